import { setTimeout as delay } from 'node:timers/promises';
import type { Metrics } from './rounds.ts';
import { cpuMsOf } from './usage.ts';

/** Processes whose CPU time is reported, in cores. */
export type Watched = { server: number[]; database?: number };

/** Measures for a while: the increase of `count` per second, and the CPU time of each process. */
export async function measureFor(
  seconds: number,
  watched: Watched,
  counts: () => Promise<Metrics> | Metrics,
): Promise<Metrics> {
  const cpu = () => ({
    client: process.cpuUsage(),
    server: watched.server.reduce((sum, pid) => sum + cpuMsOf(pid), 0),
    database: watched.database === undefined ? 0 : cpuMsOf(watched.database),
  });
  const before = cpu();
  const countsBefore = await counts();
  const startMs = performance.now();
  await delay(seconds * 1_000);
  const countsAfter = await counts();
  const elapsedMs = performance.now() - startMs;
  const after = cpu();
  const client = process.cpuUsage(before.client);
  const rates = Object.entries(countsAfter).map(([name, value]) => [
    name,
    ((value - (countsBefore[name] ?? 0)) / elapsedMs) * 1_000,
  ]);
  return {
    ...(Object.fromEntries(rates) as Metrics),
    clientCores: (client.user + client.system) / 1_000 / elapsedMs,
    serverCores: (after.server - before.server) / elapsedMs,
    databaseCores: (after.database - before.database) / elapsedMs,
  };
}
