import autocannon from 'autocannon';
import { measureFor, type Watched } from './measure.ts';
import type { Metrics } from './rounds.ts';

export const connections = 50;

export type HttpLoad = {
  baseUrl: string;
  paths: string[];
  token?: string;
  seconds: number;
  warmupSeconds: number;
  watched: Watched;
};

/** 50 connections with one request at a time each. Throws unless all statuses are 200. */
export async function requestOnce(load: HttpLoad): Promise<Metrics> {
  const headers: Record<string, string> =
    load.token === undefined ? {} : { authorization: `Bearer ${load.token}` };
  const run = (duration: number) =>
    autocannon({
      url: load.baseUrl,
      connections,
      duration,
      sampleInt: 100,
      requests: load.paths.map((path) => ({ method: 'GET' as const, path, headers })),
    });
  await run(load.warmupSeconds);
  const running = run(load.seconds);
  let answered = 0;
  running.on('response', () => (answered += 1));
  // CPU time and requests are counted over the same period.
  const [result, metrics] = await Promise.all([
    running,
    measureFor(load.seconds, load.watched, () => ({ requestsPerSecond: answered })),
  ]);
  const failed = result.non2xx + result.errors + result.timeouts;
  if (failed > 0) throw new Error(`${failed} requests to ${load.baseUrl} failed.`);
  return {
    ...metrics,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
  };
}
