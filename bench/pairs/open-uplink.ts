import { registerAccount, registerDevices } from '../api.ts';
import { postOnce, type PostLoad } from '../post-load.ts';
import type { Metrics } from '../rounds.ts';
import type { BenchService } from '../service.ts';
import type { Side } from './alternate.ts';

/** Kept connections, one per device. */
export const uplinkConnections = 100;

/** Devices that send over HTTP, one value per request. */
export async function openUplink(
  service: BenchService,
  databasePid: number,
  withCosts: (metrics: Metrics, rate: string) => Metrics,
): Promise<Side> {
  const { token } = await registerAccount(service.baseUrl);
  const devices = await registerDevices(service.baseUrl, token, uplinkConnections);
  const load: Omit<PostLoad, 'seconds' | 'warmupSeconds'> = {
    port: Number(new URL(service.baseUrl).port),
    devices,
    watched: { server: [service.pid], database: databasePid },
  };
  return {
    turn: async (seconds, warmupSeconds) =>
      withCosts(await postOnce({ ...load, seconds, warmupSeconds }), 'answersPerSecond'),
    check: async () => undefined,
  };
}
