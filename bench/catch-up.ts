import { loadavg } from 'node:os';
import { readOptionsOrExit } from '../src/cli/command-line.ts';
import { startThrowAwayCluster } from '../test/support/cluster.ts';
import { registerAccount, registerDevices } from './api.ts';
import { createBacklog } from './catch-up/backlog.ts';
import { send } from './catch-up/senders.ts';
import { schemaOf, withClient } from './database.ts';
import { numberOf } from './options.ts';
import { createReleases } from './releases.ts';
import { startBenchService } from './service.ts';
import { cpuMsOf } from './usage.ts';

const usage = `Usage: npx node bench/catch-up.ts [--values 600000] [--each 50] [--in-flight 20] [--http] [--timescaledb]
                                [--most 180]

One device that was away for a week sends --values measurements, one for each second, with --each in a message and
--in-flight messages under way (over HTTP: connections). The service has default settings and no other clients. Prints
the seconds until all are acknowledged, and the processor time of service and database. Gives up after --most seconds.`;

await main(
  readOptionsOrExit(
    usage,
    {
      values: { type: 'string' },
      each: { type: 'string' },
      'in-flight': { type: 'string' },
      most: { type: 'string' },
      http: { type: 'boolean', default: false },
      timescaledb: { type: 'boolean', default: false },
    },
    (given) => ({
      count: numberOf('values', given.values, 600_000),
      each: numberOf('each', given.each, 50),
      inFlight: numberOf('in-flight', given['in-flight'], 20),
      mostMs: numberOf('most', given.most, 180) * 1_000,
      isHttp: given.http,
      timescaledb: given.timescaledb,
    }),
  ),
);

type Run = {
  count: number;
  each: number;
  inFlight: number;
  mostMs: number;
  isHttp: boolean;
  timescaledb: boolean;
};

async function main({ count, each, inFlight, mostMs, isHttp, timescaledb }: Run): Promise<void> {
  const releases = createReleases();
  try {
    const cluster = await startThrowAwayCluster({ timescaledb, durable: true });
    releases.defer(() => cluster.remove());
    await withClient(cluster.url(), (client) => client.query('create database catch_up'));
    const databaseUrl = cluster.url('catch_up');
    const service = await startBenchService({ databaseUrl, redisUrl: null, settings: {} });
    releases.defer(() => service.stop());
    const account = await registerAccount(service.baseUrl);
    const [device] = await registerDevices(service.baseUrl, account.token, 1);
    if (!device) throw new Error('No device was registered.');
    const before = { service: cpuMsOf(service.pid), database: cpuMsOf(cluster.pid()) };
    const load = loadavg()[0];
    const backlog = createBacklog(count, each);
    const port = isHttp ? Number(new URL(service.baseUrl).port) : service.mqttPort;
    const startMs = performance.now();
    const stop = send({ device, port, isHttp, inFlight, backlog });
    const late = setTimeout(() => process.exit(1), mostMs + 30_000);
    const isDone = await Promise.race([
      backlog.done.then(() => true),
      new Promise<boolean>((resolve) => setTimeout(() => resolve(false), mostMs).unref()),
    ]);
    const seconds = (performance.now() - startMs) / 1_000;
    clearTimeout(late);
    await stop();
    const tenths = (ms: number) => Math.round(ms / 100) / 10;
    const schema = await schemaOf(databaseUrl);
    const stored = await withClient(databaseUrl, (client) =>
      client.query(`select count(*)::int as count from ${schema}.measurement`),
    );
    console.log(
      JSON.stringify({
        over: isHttp ? 'http' : 'mqtt',
        database: timescaledb ? 'TimescaleDB' : 'PostgreSQL',
        values: count,
        each,
        inFlight,
        isDone,
        seconds: Math.round(seconds * 10) / 10,
        stored: stored.rows[0],
        serviceCpuSeconds: tenths(cpuMsOf(service.pid) - before.service),
        databaseCpuSeconds: tenths(cpuMsOf(cluster.pid()) - before.database),
        loadAverage: [load, loadavg()[0]],
      }),
    );
  } finally {
    await releases.downTo(0);
  }
}
