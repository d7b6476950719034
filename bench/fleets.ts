import type { RegisteredDevice } from './api.ts';
import { createFleet, type DeviceSpec, type Fleet } from './client/fleet.ts';
import { measureFor, type Watched } from './measure.ts';
import type { Metrics } from './rounds.ts';

/** The time of the first sample: at a millisecond per sample no device reaches the future. */
export const headStartMs = 2 * 3_600_000;

/** Devices registered with the service; their topic is that of its contract. `version`: of MQTT; absent: 3.1.1. */
export function specsOf(devices: RegisteredDevice[], version?: 5): DeviceSpec[] {
  return devices.map(({ uuid, token }) => ({
    ...(version ? { version } : {}),
    clientId: uuid,
    username: uuid,
    password: token,
    topic: `devices/${uuid}/up/measurements`,
  }));
}

/** Devices of a broker without registration, with names as long as the service's. */
export function anonymousSpecs(count: number): DeviceSpec[] {
  const uuids = Array.from(
    { length: count },
    (_, i) => `00000000-0000-4000-8000-${String(i + 1).padStart(12, '0')}`,
  );
  return specsOf(uuids.map((uuid) => ({ uuid, token: 'x'.repeat(43) })));
}

export type LoadOptions = AccountQueueOptions & {
  port: number;
  devices: DeviceSpec[];
  inFlight: number;
  payload: (device: number) => string;
};

export type AccountQueueOptions = {
  samplesPerMessage: number;
  warmupSeconds: number;
  seconds: number;
  watched: Watched;
  /** Further counters to report per second. */
  counts?: () => Promise<Metrics>;
};

/** One turn with devices that connect for it and disconnect afterwards. */
export async function loadOnce(options: LoadOptions): Promise<Metrics> {
  const fleet = createFleet({ host: '127.0.0.1', ...options });
  try {
    await fleet.connect();
    return await takeTurn(fleet, options);
  } finally {
    await fleet.close();
  }
}

/** Connected devices send: warm up, measure, then wait for acknowledgements. */
export async function takeTurn(fleet: Fleet, options: AccountQueueOptions): Promise<Metrics> {
  const { seconds, watched, samplesPerMessage } = options;
  fleet.start();
  await measureFor(options.warmupSeconds, watched, () => ({}));
  fleet.latency.reset();
  const metrics = await measureFor(seconds, watched, async () => {
    const acksPerSecond = fleet.counts().acknowledged;
    const rest = await options.counts?.();
    return { acksPerSecond, rowsPerSecond: acksPerSecond * samplesPerMessage, ...rest };
  });
  const p50Ms = fleet.latency.percentile(50) / 1_000;
  const p99Ms = fleet.latency.percentile(99) / 1_000;
  if (!(await fleet.stop(30_000))) throw new Error('Some messages were never acknowledged.');
  if (fleet.counts().lost > 0) throw new Error(`${fleet.counts().lost} connections were lost.`);
  return { ...metrics, p50Ms, p99Ms };
}
