import { setTimeout as delay } from 'node:timers/promises';
import { readOptionsOrExit } from '../src/cli/command-line.ts';
import { startThrowAwayCluster } from '../test/support/cluster.ts';
import { call } from './api.ts';
import { startBenchDatabase, withClient } from './database.ts';
import { numberOf } from './options.ts';
import { createReleases } from './releases.ts';
import { requestsOf, untimed, type RouteRequest } from './routes/requests.ts';
import { openBigAccount } from './routes/fill.ts';
import { startBenchService } from './service.ts';

const usage = `Usage: npx node bench/routes.ts [options]

Calls every route of the API reference for an account with large amounts of data, one request at a time, and prints how
long the answers took. Exits with 1 if a p99 is above --most, or if a route is neither called nor listed as an exception.

  --database URL  An empty database, or one that an earlier run filled. Default: a temporary database.
  --embedded      Make the temporary database with the embedded PostgreSQL instead of TimescaleDB.
  --devices N     Devices of the account (default 10000).
  --alarms N      Closed alarms (default 2000000).
  --rounds N      How often to call each route (default 100).
  --most MS       Largest p99 that passes (default 300).
  --only TEXT     Only requests with this text in their name.
  --reads         Also print how many rows and index entries the database read; takes a second more for each request.`;

const flags = {
  database: { type: 'string' },
  embedded: { type: 'boolean', default: false },
  devices: { type: 'string' },
  alarms: { type: 'string' },
  rounds: { type: 'string' },
  most: { type: 'string' },
  only: { type: 'string', default: '' },
  reads: { type: 'boolean', default: false },
} as const;

const options = readOptionsOrExit(usage, flags, (values) => ({
  ...values,
  devices: numberOf('devices', values.devices, 10_000),
  alarms: numberOf('alarms', values.alarms, 2_000_000),
  rounds: numberOf('rounds', values.rounds, 100),
  most: numberOf('most', values.most, 300),
}));

/** Several runs may use the same database. */
const secret = 'a secret of the bench, which is long enough';

const releases = createReleases();
try {
  process.exitCode = (await measure()) ? 0 : 1;
} finally {
  await releases.downTo(0);
}

async function measure(): Promise<boolean> {
  const databaseUrl = options.database ?? (await ownDatabase());
  const service = await startBenchService({ databaseUrl, redisUrl: null, secret });
  releases.defer(() => service.stop());
  const { baseUrl } = service;
  const account = await withClient(databaseUrl, (client) =>
    openBigAccount(baseUrl, client, options),
  );
  const asked = await requestsOf(baseUrl, account);
  const left = await listLeft(baseUrl, asked);
  let slow = 0;
  for (const request of asked) {
    if (!request.name.includes(options.only)) continue;
    const before = await rowsRead(databaseUrl);
    const { times, status, failed } = await timeAll(baseUrl, account.token, request);
    const reads = ((await rowsRead(databaseUrl)) - before) / (times.length + 1);
    const [p50, p99] = [0.5, 0.99].map((part) => at(times, part));
    const isSlow = (p99 ?? 0) > options.most;
    if (isSlow || failed !== '') slow += 1;
    const row = [p50 ?? 0, p99 ?? 0].map((ms) => ms.toFixed(1).padStart(8)).join(' | ');
    const all = options.reads ? `${row} | ${Math.round(reads).toString().padStart(9)}` : row;
    console.log(`| ${request.name.padEnd(70)} | ${status} | ${all} |${isSlow ? ' !' : ''}`);
    if (failed !== '') console.log(failed);
  }
  for (const route of left) console.log(`Not called: ${route}`);
  // Devices registered here, so that another run finds the account unchanged.
  await withClient(databaseUrl, (client) =>
    client.query("delete from device where name = 'Meter'"),
  );
  return slow === 0 && left.length === 0;
}

async function ownDatabase(): Promise<string> {
  if (options.embedded) {
    const cluster = await startThrowAwayCluster({ durable: true });
    releases.defer(() => cluster.remove());
    return cluster.url();
  }
  const database = await startBenchDatabase();
  releases.defer(() => database.remove());
  return database.createEmpty('routes');
}

/** The rows that the database has read so far; its processes report them once a second. */
async function rowsRead(databaseUrl: string): Promise<number> {
  if (!options.reads) return 0;
  await delay(1_100);
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ read: string }>(
      'select tup_returned as read from pg_stat_database where datname = current_database()',
    );
    return Number(rows[0]?.read);
  });
}

/** Routes of the reference that are neither requested here nor excepted with a reason. */
async function listLeft(baseUrl: string, asked: RouteRequest[]): Promise<string[]> {
  const { paths } = await call<{ paths: Record<string, object> }>(
    baseUrl,
    'GET',
    '/v2/openapi.json',
  );
  const known = new Set([...asked.map(({ route }) => route), ...Object.keys(untimed)]);
  return Object.entries(paths)
    .flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`),
    )
    .filter((route) => !known.has(route));
}

/**
 * Sorted times to the end of the answer, ms. A request that changes something is prepared before each time, unmeasured.
 */
async function timeAll(baseUrl: string, token: string, request: RouteRequest) {
  const times: number[] = [];
  let status = 0;
  let failed = '';
  const [method = 'GET'] = request.route.split(' ');
  for (let n = -1; n < (request.rounds ?? options.rounds); n += 1) {
    const { path, body } = await request.make(n + 1);
    const over = new AbortController();
    const since = performance.now();
    const answer = await fetch(baseUrl + path, {
      method,
      signal: over.signal,
      headers: {
        authorization: `Bearer ${request.token ?? token}`,
        'content-type': request.type ?? 'application/json',
        ...request.headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    if (request.isFirstByte) {
      const reader = answer.body?.getReader();
      await reader?.read();
      times.push(performance.now() - since);
      over.abort();
    } else {
      const text = await answer.text();
      times.push(performance.now() - since);
      if (!answer.ok) failed = text;
    }
    status = answer.status;
    // The first requests fill caches.
    if (n < 0) times.length = 0;
  }
  times.sort((a, b) => a - b);
  return { times, status, failed };
}

/** The value below which this part of them lies. */
function at(sorted: number[], part: number): number {
  return sorted[Math.min(sorted.length, Math.ceil(sorted.length * part)) - 1] ?? 0;
}
