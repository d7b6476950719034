import { setTimeout as delay } from 'node:timers/promises';
import { readOptionsOrExit } from '../src/cli/command-line.ts';
import { installProfile, registerAccount, registerDevices } from './api.ts';
import { createFleet, type Fleet } from './client/fleet.ts';
import { startBenchDatabase, withClient } from './database.ts';
import { headStartMs, specsOf } from './fleets.ts';
import { describeMachine } from './machine.ts';
import { numberOf } from './options.ts';
import { createReleases } from './releases.ts';
import { startBenchService, type BenchService } from './service.ts';
import { cpuMsOf } from './usage.ts';
import { silentDevices, type SilentDevices } from './ticks/silent-devices.ts';

const usage = `Usage: npm run bench:ticks -- [--silent 100000] [--devices 1000] [--rate 1000] [--rounds 3]

Makes --silent devices fall due in the same second, while --devices others send --rate messages a second in all.
Prints how long the service took to evaluate all that were due, and how fast it acknowledged messages before and
meanwhile. Repeats this --rounds times.`;

type Turn = {
  p50Ms: number;
  p99Ms: number;
  seconds: number;
  serviceCores: number;
  databaseCores: number;
};
type Sizes = { silent: number; devices: number; ratePerSecond: number; rounds: number };
type Watched = { servicePid: number; databasePid: number };

const quietSeconds = 20;
const mostSeconds = 300;

await main(
  readOptionsOrExit(
    usage,
    {
      silent: { type: 'string' },
      devices: { type: 'string' },
      rate: { type: 'string' },
      rounds: { type: 'string' },
    },
    (values) => ({
      silent: numberOf('silent', values.silent, 100_000),
      devices: numberOf('devices', values.devices, 1_000),
      ratePerSecond: numberOf('rate', values.rate, 1_000),
      rounds: numberOf('rounds', values.rounds, 3),
    }),
  ),
);

async function main({ silent, devices, ratePerSecond, rounds }: Sizes): Promise<void> {
  const releases = createReleases();
  try {
    const database = await startBenchDatabase(60);
    releases.defer(() => database.remove());
    const databaseUrl = await database.create('ticks');
    const service = await startBenchService({ databaseUrl, redisUrl: null });
    releases.defer(() => service.stop());
    const fleet = await connectFleet(service, devices, ratePerSecond);
    releases.defer(() => fleet.close());
    const clones = await silentDevices(service, databaseUrl, silent);
    console.log(describeMachine(database.description));
    const watched = { servicePid: service.pid, databasePid: database.pid };
    for (let round = 1; round <= rounds; round += 1)
      await runRound(round, fleet, clones, databaseUrl, watched);
  } finally {
    await releases.downTo(0);
  }
}

async function runRound(
  round: number,
  fleet: Fleet,
  silent: SilentDevices,
  databaseUrl: string,
  watched: Watched,
): Promise<void> {
  await withClient(databaseUrl, (client) => client.query('checkpoint'));
  fleet.start();
  await delay(5_000);
  const without = await measureWhile(fleet, watched, () => delay(quietSeconds * 1_000));
  fleet.latency.reset();
  const due = await silent.fallDue();
  const during = await measureWhile(fleet, watched, due.untilEvaluated);
  await due.expectAll();
  if (!(await fleet.stop(30_000))) throw new Error('Some messages were never acknowledged.');
  const row = {
    round,
    evaluatedWithinSeconds: round1(during.seconds),
    p50Ms: `${round1(without.p50Ms)} → ${round1(during.p50Ms)}`,
    p99Ms: `${round1(without.p99Ms)} → ${round1(during.p99Ms)}`,
    serviceCores: `${without.serviceCores.toFixed(2)} → ${during.serviceCores.toFixed(2)}`,
    databaseCores: `${without.databaseCores.toFixed(2)} → ${during.databaseCores.toFixed(2)}`,
    p99Times: (during.p99Ms / without.p99Ms).toFixed(2),
  };
  console.log(JSON.stringify(row));
}

async function measureWhile(
  fleet: Fleet,
  { servicePid, databasePid }: Watched,
  work: () => Promise<unknown>,
): Promise<Turn> {
  fleet.latency.reset();
  const before = [cpuMsOf(servicePid), cpuMsOf(databasePid)];
  const sinceMs = performance.now();
  const limit = new AbortController();
  const late = delay(mostSeconds * 1_000, undefined, { signal: limit.signal }).catch(() => {});
  await Promise.race([work(), late]);
  limit.abort();
  const elapsedMs = performance.now() - sinceMs;
  return {
    serviceCores: (cpuMsOf(servicePid) - (before[0] ?? 0)) / elapsedMs,
    databaseCores: (cpuMsOf(databasePid) - (before[1] ?? 0)) / elapsedMs,
    p50Ms: fleet.latency.percentile(50) / 1_000,
    p99Ms: fleet.latency.percentile(99) / 1_000,
    seconds: (performance.now() - sinceMs) / 1_000,
  };
}

async function connectFleet(
  { baseUrl, mqttPort: port }: BenchService,
  count: number,
  ratePerSecond: number,
): Promise<Fleet> {
  const account = await registerAccount(baseUrl);
  const devices = await registerDevices(baseUrl, account.token, count);
  await installProfile(baseUrl, account.token, devices);
  const startTs = Date.now() - headStartMs;
  const fleet = createFleet({
    host: '127.0.0.1',
    port,
    devices: specsOf(devices),
    ratePerSecond,
    payload: (_device, seq) =>
      JSON.stringify({ sId: '0x01', val: 20 + (seq % 3), ts: startTs + seq * 10 }),
  });
  await fleet.connect();
  return fleet;
}

function round1(value: number): number {
  return Math.round(value * 10) / 10;
}
