import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { startThrowAwayCluster } from '../test/support/cluster.ts';
import { call, registerAccount, registerDevices, type RegisteredDevice } from './api.ts';
import { createFleet } from './client/fleet.ts';
import { withClient } from './database.ts';
import { numberOf } from './options.ts';
import { createReleases } from './releases.ts';
import { schemaOf } from './database.ts';
import { startBenchService } from './service.ts';
import { cpuMsOf } from './usage.ts';

const usage = `npx node bench/catch-up.ts [--values 600000] [--each 50] [--in-flight 20] [--http] [--timescaledb]
                                [--most 180]

One device that was away for a week sends --values measurements, one of each second, --each in a message and --in-flight
messages under way (over HTTP: connections). The service has its defaults, and nobody else is there. Prints the seconds
until all are acknowledged, and the processor time of service and database; gives up after --most seconds.`;

const { values: given } = parseArgs({
  options: {
    values: { type: 'string' },
    each: { type: 'string' },
    'in-flight': { type: 'string' },
    most: { type: 'string' },
    http: { type: 'boolean', default: false },
    timescaledb: { type: 'boolean', default: false },
    help: { type: 'boolean' },
  },
});
if (given.help) console.log(usage);
else
  await main({
    count: numberOf(given.values, 600_000, usage),
    each: numberOf(given.each, 50, usage),
    inFlight: numberOf(given['in-flight'], 20, usage),
    mostMs: numberOf(given.most, 180, usage) * 1_000,
    isHttp: given.http,
    timescaledb: given.timescaledb,
  });

type Run = {
  count: number;
  each: number;
  inFlight: number;
  mostMs: number;
  isHttp: boolean;
  timescaledb: boolean;
};
type Backlog = {
  next: () => string | null;
  acknowledged: () => void;
  failed: (error: unknown) => void;
  done: Promise<void>;
};
type Sending = { device: RegisteredDevice; port: number; inFlight: number; backlog: Backlog };

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
    const stop = (isHttp ? post : publish)({ device, port, inFlight, backlog });
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
    await call(service.baseUrl, 'GET', '/livez');
  } finally {
    await releases.downTo(0);
  }
}

/** A value of each second until now, in messages of `each`. */
function createBacklog(count: number, each: number): Backlog {
  const startTs = Date.now() - count * 1_000;
  const { promise: done, resolve, reject: failed } = Promise.withResolvers<void>();
  const messages = Math.ceil(count / each);
  let sent = 0;
  let acknowledged = 0;
  const valueOf = (n: number) => ({
    sId: '0x01',
    val: 20 + (n % 50) / 10,
    ts: startTs + n * 1_000,
  });
  return {
    done,
    failed,
    next() {
      if (sent === messages) return null;
      const first = sent * each;
      sent += 1;
      if (each === 1) return JSON.stringify(valueOf(first));
      const length = Math.min(each, count - first);
      return JSON.stringify(Array.from({ length }, (_, n) => valueOf(first + n)));
    },
    acknowledged() {
      acknowledged += 1;
      if (acknowledged === messages) resolve();
    },
  };
}

function publish({ device, port, inFlight, backlog }: Sending): () => Promise<void> {
  const { uuid, token } = device;
  const fleet = createFleet({
    host: '127.0.0.1',
    port,
    inFlight,
    devices: [
      { clientId: uuid, username: uuid, password: token, topic: `devices/${uuid}/up/measurements` },
    ],
    payload: backlog.next,
    onAcknowledged: backlog.acknowledged,
  });
  fleet.start();
  void fleet.connect();
  return () => fleet.close();
}

/** What is refused for now (429, 503) is sent again after `Retry-After`. */
function post({ device, port, inFlight, backlog }: Sending): () => Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: inFlight });
  let isOver = false;
  async function send(): Promise<void> {
    for (let body = backlog.next(); body !== null && !isOver;) {
      const sending = request({
        agent,
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: `/devices/${device.uuid}/up/measurements`,
        headers: {
          Authorization: `Bearer ${device.token}`,
          'Content-Type': 'application/json',
          'Content-Length': Buffer.byteLength(body),
        },
      });
      sending.end(body);
      const [response] = await once(sending, 'response');
      response.resume();
      await once(response, 'end');
      const retryAfter = Number(response.headers['retry-after'] ?? 1);
      if (response.statusCode === 429 || response.statusCode === 503) {
        await new Promise((resolve) => setTimeout(resolve, retryAfter * 1_000));
        continue;
      }
      if (response.statusCode !== 200) throw new Error(`Answered ${response.statusCode}.`);
      backlog.acknowledged();
      body = backlog.next();
    }
  }
  for (let n = 0; n < inFlight; n += 1)
    send().catch((error: unknown) => {
      if (!isOver) backlog.failed(error);
    });
  return async () => {
    isOver = true;
    agent.destroy();
  };
}
