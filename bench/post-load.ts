import type { RegisteredDevice } from './api.ts';
import { createFleet } from './client/fleet.ts';
import { measureFor, type Watched } from './measure.ts';
import type { Metrics } from './rounds.ts';

export type PostLoad = {
  port: number;
  /** A kept connection each. */
  devices: RegisteredDevice[];
  seconds: number;
  warmupSeconds: number;
  watched: Watched;
};

/**
 * Each device has one request at a time under way: a value of one sense. Returns also the answers per second, and per
 * second of the server's processor time. Throws if an answer is not 200.
 */
export async function postOnce(load: PostLoad): Promise<Metrics> {
  const { port, devices, seconds, warmupSeconds, watched } = load;
  const startTs = Date.now() - 1_000_000;
  const failures: string[] = [];
  const fleet = createFleet({
    host: '127.0.0.1',
    port,
    devices: devices.map(({ uuid, token }) => ({
      clientId: uuid,
      username: uuid,
      password: token,
      topic: `devices/${uuid}/up/measurements`,
      http: { port, connections: 1, isKept: true, body: 'json', most: 1 },
    })),
    payload: (_device, seq) =>
      `{"sId":"0x01","val":${20 + (seq % 100) / 20},"ts":${startTs + seq}}`,
    onOffline: (_device, reason) => void failures.push(reason),
  });
  await fleet.connect();
  fleet.start();
  await measureFor(warmupSeconds, watched, () => ({}));
  const metrics = await measureFor(seconds, watched, () => ({
    answersPerSecond: fleet.counts().acknowledged,
  }));
  // Whoever closes loses connections too.
  const [failure] = failures;
  await fleet.close('reset');
  if (failure !== undefined) throw new Error(failure);
  const { answersPerSecond = NaN, serverCores = NaN } = metrics;
  return { ...metrics, answersPerCpuSecond: answersPerSecond / serverCores };
}
