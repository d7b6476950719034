import { useEffect, useRef } from 'preact/hooks';
import { reload, reviseAll, useQuery, type Query } from '../../api/cache.ts';
import {
  type FleetFilter,
  updateDevice,
  listDevices,
  type ListedDevice,
} from '../../api/devices.ts';
import { type LiveValue, onStream, type StreamMessage } from '../../app/stream.ts';
import type { DeviceList } from '../../api/types.ts';
import { now } from '../../app/now.ts';
import { queryOf } from '../../app/router.ts';
import { throttle } from '../../app/throttle.ts';

const everyMs = 10_000;
/** The list and its counts are read at most once in this time, however much is streamed. */
const pauseMs = 2_000;
/** The time last heard is written twice a minute: if a device with an older one sends a value, it has come back. */
const silentMs = 60_000;
const mostBack = 1_000;

export type FleetAnswer = {
  body: DeviceList;
  /** The cursor of the next page. */
  next: string | null;
  /** How many devices are on the pages before. For display only: the position itself is in the cursor. */
  before: number;
};

type Fleet = Query<FleetAnswer> & {
  /** This answers an earlier query; the new one is under way. */
  isOld: boolean;
};

/** A page of devices, kept up to date. The previous page stays until the new one is there. */
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
 * Handles what changes rows and counts: connects and disconnects, alarms, events of devices (such as an answer to a
 * profile), and a value from a device that is shown as silent. Rows change at once, counts with the next answer.
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
    // The service writes the new time about a second later.
    if (message.kind === 'values' && hasReturned(message.values)) setTimeout(ask, pauseMs);
    if (message.kind === 'presence' || message.kind === 'values') hearAll(message);
  });
  return () => {
    end();
    isOver = true;
  };
}

/** An unchanged answer stays the same object, so that rows are not drawn again. */
function hearAll(message: StreamMessage): void {
  reviseAll<FleetAnswer>('fleet/', (answer) => {
    const devices = answer.body.devices.map((device) => updateDevice(device, message));
    const isSame = devices.every((device, n) => device === answer.body.devices[n]);
    return isSame ? answer : { ...answer, body: { ...answer.body, devices } };
  });
}
