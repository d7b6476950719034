import { useEffect, useRef } from 'preact/hooks';
import { reload, useQuery, type Query } from '../../api/cache.ts';
import { listDevices, type FleetFilter } from '../../api/devices.ts';
import type { DeviceList } from '../../api/types.ts';
import { queryOf } from '../../app/router.ts';
import { onStream } from '../../app/stream.ts';

const everyMs = 10_000;
/** Of many alarms at once the list is asked for now and then. */
const pauseMs = 2_000;

export type FleetAnswer = {
  body: DeviceList;
  /** Its next page. */
  next: string | null;
  /** Devices on the pages before. Only for people: which page it is only the cursor knows. */
  before: number;
};

export type Fleet = Query<FleetAnswer> & {
  /** It is the answer to an earlier question: the new one is under way. */
  isOld: boolean;
};

/** A page of devices, as it changes. The one before stays until another is there. */
export function useFleet(filter: FleetFilter): Fleet {
  const key = `fleet/${JSON.stringify(filter)}`;
  const query = useQuery(key, (signal) => listDevices(filter, signal), { everyMs });
  const last = useRef<FleetAnswer>(undefined);
  const from = filter.cursor === '' ? 0 : Number.parseInt(queryOf('from'), 10);
  if (query.data) last.current = { ...query.data, before: Math.max(0, from || 0) };
  useEffect(watchAlarms, []);
  const isOld = query.data === undefined && query.error === undefined;
  return { ...query, isOld, data: query.data || isOld ? last.current : undefined };
}

function watchAlarms(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const ask = () => {
    timer = undefined;
    reload('fleet/');
  };
  const end = onStream(({ kind }) => {
    if (kind === 'alarm') timer ??= setTimeout(ask, pauseMs);
  });
  return () => {
    end();
    clearTimeout(timer);
  };
}
