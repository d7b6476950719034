import { setTimeout as delay } from 'node:timers/promises';
import coldRoom from '../../../examples/cold-room.json' with { type: 'json' };
import { slicesOf } from '../../lib/text.ts';
import { messageOf } from '../../lib/thrown.ts';
import type { Screen } from '../command-line.ts';
import {
  configurationOf,
  connectHttpDevice,
  connectMqttDevice,
  type Protocol,
  protocols,
  type SimulatedDevice,
  type Tally,
} from './devices.ts';
import type { Options } from './options.ts';
import { AnyAnswer, PurposeAnswer, RegistrationAnswer, type Rest } from './rest.ts';

export const httpConnections = 8;
const connectsAtOnce = 32;
/** Devices on which one request installs a profile. */
const installSize = 100;
const acceptTimeoutMs = 60_000;

export type Fleet = {
  rest: Rest;
  screen: Screen;
  tally: Tally;
  insecure: boolean;
  protocol: Options['protocol'];
  signal: AbortSignal;
};

/** The protocol of device `index`; with `all`, the devices alternate. */
const protocolOf = ({ protocol }: Fleet, index: number): Protocol =>
  protocol === 'all' ? (protocols[index % protocols.length] as Protocol) : protocol;

/** Registers this many devices, or fewer if it is ended early. */
export async function registerDevices(fleet: Fleet, total: number): Promise<RegistrationAnswer[]> {
  const indexes = Array.from({ length: total }, (_, index) => index);
  let done = 0;
  return forEachBounded(indexes, httpConnections, fleet.signal, async (index) => {
    const isHttp = protocolOf(fleet, index) === 'http';
    const body = { ...(isHttp ? { protocol: 'http' } : {}), ...configurationOf(index) };
    const call = { method: 'POST', path: '/v2/devices', answer: RegistrationAnswer, body } as const;
    const { value } = await fleet.rest.call(call);
    done += 1;
    fleet.screen.bar('Registering', done, total);
    return value;
  });
}

/** Connects all devices. If one is refused, disconnects those that are connected. */
export async function connectDevices(
  fleet: Fleet,
  registrations: RegistrationAnswer[],
): Promise<SimulatedDevice[]> {
  const total = registrations.length;
  const connected: SimulatedDevice[] = [];
  const failed = new AbortController();
  const { signal } = failed;
  const numbered = registrations.map((registration, index) => ({ registration, index }));
  const connect = async (one: { registration: RegistrationAnswer; index: number }) => {
    const protocol = protocolOf(fleet, one.index);
    const connectDevice = protocol === 'http' ? connectHttpDevice : connectMqttDevice;
    const { insecure, tally } = fleet;
    const device = await connectDevice({ ...one, protocol, insecure, tally, signal });
    if (signal.aborted) await device.disconnect();
    connected.push(device);
    fleet.screen.bar('Connecting ', connected.length, total);
    return device;
  };
  try {
    return await forEachBounded(numbered, connectsAtOnce, fleet.signal, connect);
  } catch (error) {
    failed.abort();
    await Promise.all(connected.map((device) => device.disconnect()));
    const { host, port } = registrations[0] ?? { host: '', port: 0 };
    const why = messageOf(error);
    throw new Error(`A device could not connect to ${host}:${port}: ${why}`, { cause: error });
  }
}

/** Stores the purpose and returns its identifier. */
export async function storePurpose(rest: Rest): Promise<string> {
  const call = { method: 'POST', path: '/v2/purposes', answer: PurposeAnswer } as const;
  const { value } = await rest.call({ ...call, body: coldRoom });
  return value.purposeUuid;
}

/** Installs the purpose on every device and waits until all of them have accepted it. */
export async function installOnFleet(
  fleet: Fleet,
  devices: SimulatedDevice[],
  purposeUuid: string,
): Promise<void> {
  for (const some of slicesOf(devices, installSize)) {
    const deviceAuthUuids = some.map(({ uuid }) => uuid);
    const body = { deviceAuthUuids, purposeUuids: [purposeUuid], purposes: [] };
    const path = '/v2/devices/profile';
    await fleet.rest.call({ method: 'POST', path, answer: AnyAnswer, body });
  }
  let accepted = 0;
  const all = Promise.all(
    devices.map(async (device) => {
      await device.accepted;
      accepted += 1;
      fleet.screen.bar('Installing ', accepted, devices.length);
    }),
  );
  await Promise.race([all, tooLate(fleet.signal, () => devices.length - accepted)]);
}

/** Rejects after a while. An early end resolves it. */
async function tooLate(signal: AbortSignal, missing: () => number): Promise<void> {
  const ended = await delay(acceptTimeoutMs, false, { ref: false, signal }).catch(() => true);
  if (ended) return;
  const waited = acceptTimeoutMs / 1_000;
  throw new Error(`${missing()} devices did not receive their profile within ${waited} s.`);
}

/**
 * Does `work` for every item, at most `limit` at a time, and starts no further one once the signal is aborted. Results
 * are in the order of the items. Items that were not started have none.
 */
export async function forEachBounded<T, R>(
  items: readonly T[],
  limit: number,
  signal: AbortSignal,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: { index: number; value: R }[] = [];
  const queue = items.entries();
  let failed = false;
  const worker = async () => {
    for (const [index, item] of queue) {
      if (failed || signal.aborted) return;
      try {
        results.push({ index, value: await work(item) });
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results.toSorted((a, b) => a.index - b.index).map(({ value }) => value);
}
