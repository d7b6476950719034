import { mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { loadConfig } from '../src/config/config.ts';
import { startService } from '../src/service.ts';
import { fillAccount } from './answers/fill.ts';
import { registerAccount } from './api.ts';
import { startBenchDatabase, withClient } from './database.ts';
import { longestPieceMs, medianPieceMs } from './edges/longest-piece.ts';
import { batchOf } from './edges/payloads.ts';
import { startSender, type Ask } from './edges/sender.ts';
import { createReleases } from './releases.ts';
import { limitsFor } from './service.ts';

const help = `Usage: node --expose-gc --max-semi-space-size=256 bench/answers.ts [word]

For each answer that grows with what is stored, prints the longest time for which it blocks the event loop, in ms of
processor time. The database holds as much as one account may have. With a word: only answers with that word in their
name. Medians of 50 warm runs; what can happen only once runs once.
`;

const [only = ''] = process.argv.slice(2);
if (only === '--help' || globalThis.gc === undefined) {
  process.stdout.write(help);
  process.exit(only === '--help' ? 0 : 2);
}

const releases = createReleases();
try {
  await measure();
} finally {
  await releases.downTo(0);
}

async function measure(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'sensorium-answers-'));
  releases.defer(() => rm(dir, { recursive: true, force: true }));
  const database = await startBenchDatabase();
  releases.defer(() => database.remove());
  const databaseUrl = await database.create('answers');
  const configFile = join(dir, 'bench.json');
  writeFileSync(configFile, JSON.stringify(await limitsFor()));
  const config = await loadConfig({
    DATABASE_URL: databaseUrl,
    SECRET: 'a secret of the bench, which is long enough',
    HTTP_HOST: '127.0.0.1',
    MQTT_HOST: '127.0.0.1',
    HTTP_PORT: '0',
    MQTT_PORT: '0',
    PUBLIC_HOST: '127.0.0.1',
    CONFIG_FILE: configFile,
    DATA_DIR: dir,
  });
  const service = await startService(config, pino({ level: 'silent' }));
  const port = service.addresses.http?.port ?? 0;
  const account = await registerAccount(`http://127.0.0.1:${port}`);
  const uuid = await withClient(databaseUrl, (client) => fillAccount(client, account.email));
  const sender = startSender(port, account.token);
  releases.defer(() => sender.close());
  for (const [name, ask] of Object.entries(asksOf(uuid))) {
    if (!name.includes(only)) continue;
    const status = await sender.send(ask);
    print(name, await medianPieceMs(() => sender.send(ask)), status);
  }
  for (const [name, ask] of Object.entries(importsOf(uuid))) {
    if (!name.includes(only)) continue;
    const status = await sender.send(ask);
    print(name, await medianPieceMs(() => sender.send(ask), 9), status);
  }
  await measureBatches(port);
  const remove: Ask = {
    method: 'DELETE',
    path: '/v2/accounts',
    body: JSON.stringify({ password: 'a password of the bench' }),
  };
  if ('account'.includes(only) || only === '')
    print(
      'delete an account of 10,000 devices',
      await longestPieceMs(() => sender.send(remove)),
      '',
    );
  print('stop', await longestPieceMs(() => service.close()), '');
}

/** Uses an account of its own, because each run leaves a thousand devices behind. */
async function measureBatches(port: number): Promise<void> {
  const account = await registerAccount(`http://127.0.0.1:${port}`);
  const sender = startSender(port, account.token);
  releases.defer(() => sender.close());
  const batches: Record<string, string> = {
    'batch: 1,000 devices, 4 MiB': batchOf(1_000, 28),
    'batch: 4 devices of 1,024 senses': batchOf(4, 1_024),
    'batch: 1,000 devices, each wrong': batchOf(1_000, 28).replaceAll('"sId"', '"sid"'),
  };
  for (const [name, body] of Object.entries(batches)) {
    if (!name.includes(only)) continue;
    const ask: Ask = { method: 'POST', path: '/v2/devices/batch', body };
    const status = await sender.send(ask);
    print(name, await medianPieceMs(() => sender.send(ask), 9), status);
  }
}

/** Imports of values that, after the first time, are stored already. */
function importsOf(uuid: string): Record<string, Ask> {
  const rows = Array.from({ length: 50_000 }, (_, n) => ({
    n: n % 1_000,
    ts: 1_700_000_000_000 + n,
  }));
  const lines = rows.map(
    ({ n, ts }) => `{"deviceAuthUuid":"${uuid}","sId":"0x${n.toString(16)}","val":${n},"ts":${ts}}`,
  );
  const cells = rows.map(({ n, ts }) => `${uuid},0x${n.toString(16)},${n},${ts}`);
  const post = (type: string, body: string): Ask => ({
    method: 'POST',
    path: '/v2/measurements/import',
    type,
    body,
  });
  return {
    'import: NDJSON, 50,000 lines': post('application/x-ndjson', lines.join('\n')),
    'import: CSV, 50,000 lines': post(
      'text/csv',
      ['deviceAuthUuid,sId,val,ts', ...cells].join('\n'),
    ),
    'import: NDJSON, each line wrong': post('application/x-ndjson', '{"sId":1}\n'.repeat(50_000)),
    'import: NDJSON, lines of 20,000 signs': post(
      'application/x-ndjson',
      `[${'[],'.repeat(9_990)}[]]\n`.repeat(50),
    ),
  };
}

function asksOf(uuid: string): Record<string, Ask> {
  const get = (path: string, accept?: string): Ask => ({
    method: 'GET',
    path,
    ...(accept === undefined ? {} : { accept }),
  });
  const history = `/v2/measurements/${uuid}`;
  const bulk = `/v2/measurements?devices=${uuid}`;
  return {
    'history: a page of 1,000': get(`${history}?limit=1000`),
    'history: a page behind a cursor': get(`${history}?limit=1000&senses=0x1000,0x1001,0x1002`),
    'history: buckets of a minute': get(`${history}?bucket=1m&limit=1000`),
    'bulk: JSON, 300,000 points': get(bulk),
    'bulk: columns': get(`${bulk}&shape=columns`),
    'bulk: CSV': get(bulk, 'text/csv'),
    'bulk: NDJSON': get(bulk, 'application/x-ndjson'),
    'bulk: buckets of an hour': get(`${bulk}&bucket=1h`),
    'newest: 500 devices': get('/v2/measurements/latest?limit=500'),
    'newest: 1,000 senses': get(`/v2/measurements/latest?devices=${uuid}`),
    'events: 1,000 of 16 KB': get(`/v2/events/${uuid}?limit=1000`),
    'stream: resumes at the oldest': { ...get('/v2/events/stream'), lastEventId: '1.1:1:.0' },
    'devices: 10,000': get('/v2/devices'),
    'devices: a page of 1,000, with counts': get('/v2/devices?limit=1000&counts=true'),
    'purposes: 1,000': get('/v2/purposes'),
    rejections: get(`/v2/devices/${uuid}/rejections`),
    audit: get('/v2/accounts/audit'),
    usage: get('/v2/accounts/usage'),
  };
}

function print(name: string, ms: number, more: string | number): void {
  console.log(`| ${name.padEnd(38)} | ${ms.toFixed(1).padStart(7)} | ${more} |`);
}
