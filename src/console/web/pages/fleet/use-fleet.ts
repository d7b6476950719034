import { useEffect, useRef } from 'preact/hooks';
import { reload, reviseAll, useQuery, type Query } from '../../api/cache.ts';
import { type FleetFilter, hear, listDevices, type ListedDevice } from '../../api/devices.ts';
import { type LiveValue, onStream, type StreamMessage } from '../../app/stream.ts';
import type { DeviceList } from '../../api/types.ts';
import { now } from '../../app/now.ts';
import { queryOf } from '../../app/router.ts';
import { throttle } from '../../app/throttle.ts';

const everyMs = 10_000;
/** However much is told at once, the list and its counts are asked for no sooner again. */
const pauseMs = 2_000;
/** When a device was heard last is written twice a minute: one of before this has come back. */
const silentMs = 60_000;
const mostBack = 1_000;

export type FleetAnswer = {
  body: DeviceList;
  /** Its next page. */
  next: string | null;
  /** Devices on the pages before. Only for people: which page it is only the cursor knows. */
  before: number;
};

type Fleet = Query<FleetAnswer> & {
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
  useEffect(() => watchStream(() => last.current?.body.devices ?? []), []);
  const isOld = query.data === undefined && query.error === undefined;
  return { ...query, isOld, data: query.data || isOld ? last.current : undefined };
}

/**
 * What the stream tells that changes rows and counts: who connects and leaves, alarms, events of devices (a profile
 * was answered), and a value of one that is shown as silent. Rows change at once, counts with the next answer.
 */
function watchStream(shown: () => readonly ListedDevice[]): () => void {
  /** Devices that came back, until the list says so or `everyMs` has passed. */
  let back = new Map<string, number>();
  let isOver = false;
  const ask = throttle(() => {
    if (!isOver) reload('fleet/');
  }, pauseMs);
  const comesBack = (uuid: string): boolean => {
    if (now() - (back.get(uuid) ?? 0) < everyMs) return false;
    const device = shown().find((one) => one.uuid === uuid);
    if (!device || device.connected || now() - (device.lastSeenTs ?? 0) < silentMs) return false;
    if (back.size > mostBack) back = new Map();
    back.set(uuid, now());
    return true;
  };
  const hasReturned = (values: readonly LiveValue[]): boolean =>
    values.some(({ deviceAuthUuid }) => comesBack(deviceAuthUuid));
  const moves = (message: StreamMessage): boolean => {
    if (message.kind === 'event') return message.event.type === 'device';
    return ['alarm', 'presence', 'ask-again'].includes(message.kind);
  };
  const end = onStream((message) => {
    if (moves(message)) ask();
    if (message.kind === 'ask-again') reload('labels');
    // That it was heard is written a second later.
    if (message.kind === 'values' && hasReturned(message.values)) setTimeout(ask, pauseMs);
    if (message.kind === 'presence' || message.kind === 'values') hearAll(message);
  });
  return () => {
    end();
    isOver = true;
  };
}

/** An answer in which nothing changes stays as it is: rows are not drawn again. */
function hearAll(message: StreamMessage): void {
  reviseAll<FleetAnswer>('fleet/', (answer) => {
    const devices = answer.body.devices.map((device) => hear(device, message));
    const isSame = devices.every((device, n) => device === answer.body.devices[n]);
    return isSame ? answer : { ...answer, body: { ...answer.body, devices } };
  });
}
