import { now } from '../app/now.ts';
import type { StreamMessage } from '../app/stream.ts';
import type { ListedDevice } from './devices.ts';

type Live = Pick<ListedDevice, 'connected' | 'presence' | 'lastSeenTs'>;

/** A value that comes moves when its device was seen; not for each one. */
const seenEveryMs = 10_000;

/** What is told of devices changes in what is known of them; the same object where it is nothing. */
export function hear<D extends ListedDevice>(device: D, message: StreamMessage): D {
  const change = changeOf(device, message);
  return change ? { ...device, ...change } : device;
}

function changeOf(device: ListedDevice, message: StreamMessage): Partial<Live> | null {
  if (message.kind === 'presence') {
    const told = message.devices.findLast(({ deviceAuthUuid }) => deviceAuthUuid === device.uuid);
    if (!told) return null;
    const { presence, lastSeenTs } = told;
    return { presence, connected: presence === 'online', lastSeenTs };
  }
  if (message.kind !== 'values' || now() - (device.lastSeenTs ?? 0) < seenEveryMs) return null;
  const hasSent = message.values.some(({ deviceAuthUuid }) => deviceAuthUuid === device.uuid);
  return hasSent ? { lastSeenTs: now() } : null;
}
