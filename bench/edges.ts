import defaults from '../config/default.ts';
import { Settings } from '../src/config/settings.ts';
import { randomUUID } from 'node:crypto';
import { yieldToEventLoop } from '../src/lib/event-loop.ts';
import { pino } from 'pino';
import { parseUplink } from '../connector/device/receive.ts';
import { asyncApiDocument } from '../connector/device/asyncapi.ts';
import { createLocalBus } from '../src/bus/bus.ts';
import { Purpose } from '../src/contract/purpose.ts';
import type { Database } from '../src/db/database.ts';
import { deviceRoutes } from '../src/devices/routes.ts';
import { docsRoutes } from '../src/http/docs.ts';
import { startHttp } from '../src/http/server.ts';
import { deriveKeys } from '../src/config/keys.ts';
import { createInstall, profileRoutes } from '../src/profiles/routes.ts';
import { createExploring } from '../src/purposes/cases.ts';
import { purposeRoutes } from '../src/purposes/purposes.ts';
import { medianPieceMs } from './edges/longest-piece.ts';
import * as payloads from './edges/payloads.ts';
import { type Ask, startSender } from './edges/sender.ts';

const help = `Usage: node --expose-gc --max-semi-space-size=256 bench/edges.ts [word]

For each thing that a client can send or ask for, at its limit, prints the longest time for which it blocks the event
loop, in ms of processor time. With a word: only things with that word in their name. Medians of 50 warm runs. There is
no database: its answers are made up.
`;

const [only = ''] = process.argv.slice(2);
if (only === '--help' || globalThis.gc === undefined) {
  process.stdout.write(help);
  process.exit(only === '--help' ? 0 : 2);
}

const uuid = '0f8fad5b-d9cb-469f-a165-70867728950e';
const listed = Array.from({ length: 10_000 }, () => ({
  uuid: randomUUID(),
  token_version: 1,
  name: 'Cold room',
  pu_id: 1,
  st_id: 1,
  state_at: 1,
  connected: true,
  last_seen_at: 1,
}));

/** For each of four devices, as many as its limit allows. */
const senses = Array.from({ length: 1_024 }, (_, n) => ({
  sId: `0x${n.toString(16)}`,
  min: 0,
  max: 1,
}));

/** Parsed, as the driver returns it. */
const evaluated = () => ({
  device_id: 1,
  runtime: null,
  profile_id: uuid,
  engine: 'service',
  purposes: JSON.parse(stored) as unknown,
});

/** A database that finds every row. */
async function query(asked: string | { text: string }, values: unknown[] = []) {
  const text = typeof asked === 'string' ? asked : asked.text;
  // Each chunk from a socket starts a new piece.
  await yieldToEventLoop();
  const rows = text.includes('token_version, d.name')
    ? listed
    : text.includes('update device_state')
      ? (values[1] as string[]).map((each, index) => ({ device_id: index, uuid: each }))
      : text.includes('json_array_elements')
        ? senses
        : text.includes('as module')
          ? Array.from({ length: 4 }, () => ({ module: [{ senses }] }))
          : text.includes('pc.purposes')
            ? [evaluated()]
            : [{ id: uuid }];
  return { rows, rowCount: 1 };
}
const db = {
  query,
  transaction: (work: (tx: unknown) => unknown) => work({ query }),
} as unknown as Database;
/** The largest profile, with the largest states. */
const installed = payloads.variedPurpose(18);
const stored = JSON.stringify([Purpose.parse(JSON.parse(installed))]);
const { deviceTokens: keys, secretIds } = deriveKeys('a secret of the bench, which is long enough');
const bus = createLocalBus({ onListenerError: () => {} });
const quotas = Settings.parse(defaults).quotas;
const limitsOf = () => quotas;
const exploring = createExploring({ warnMs: 0 });
const address = { id: 1, kind: 'mqtt' as const, name: 'c', protocol: 'mqtt', host: 'x', port: 1 };
const routes = [
  ...purposeRoutes({ db, quotas, limitsOf, warnOfNumbers: () => [], exploring }),
  ...profileRoutes({
    db,
    install: createInstall({
      db,
      bus,
      quotas,
      limitsOf,
      warnOfSms: async () => [],
      warnOfExplored: exploring.warnOf,
    }),
  }),
  ...deviceRoutes({
    db,
    bus,
    keys,
    secretId: secretIds[0] ?? '',
    listConnectors: () => [address],
    removeDevice: async () => true,
    findNewest: (async () => new Map()) as never,
    onConfigured: async () => undefined,
    quotas,
    limitsOf,
    exports: { run: async (_accountId, _signal, pages) => pages },
    newUuid: randomUUID,
    startJob: () => Promise.reject(new Error('There are no jobs here.')),
    listJobDevices: () => Promise.resolve(null),
    takeLabelLimits: async () => undefined,
    planChange: () => Promise.reject(new Error('no jobs')),
    planBack: () => Promise.resolve(null),
    planByLabel: () => ({}),
    previewChange: () => Promise.reject(new Error('no jobs')),
    isAhead: () => true,
    findByValues: async () => ({ in: null, notIn: null }),
  }),
];
const http = await startHttp({
  routes: [...routes, ...docsRoutes(routes, { version: '1', getAsyncApi: asyncApiDocument })],
  host: '127.0.0.1',
  port: 0,
  authenticate: async () => ({ accountId: 1, accountUuid: uuid, sessionId: uuid }),
  log: pino({ level: 'silent' }),
  clock: Date.now,
});
const sender = startSender(http.port);

const longCause = JSON.stringify({ sId: '0x1'.padEnd(70, '0'), thresholds: { isGt: 1.23456789 } });
const longPurpose = payloads.purposeOf(245_000, longCause);
const post = (path: string, body: string): Ask => ({ method: 'POST', path, body });
const { bodies, configurations, leanPurpose, purposeOf, installOf, messages } = payloads;
const asks: Record<string, Ask> = {
  'body: 30,000 keys': post('/v2/purposes', bodies.keys),
  'body: 20,000 keys': post('/v2/purposes', bodies.allowedKeys),
  'body: 20,000 long keys': post('/v2/purposes', bodies.longKeys),
  'body: arrays 15 deep, 1 MiB': post('/v2/purposes', bodies.deepArrays),
  'body: 1 MiB of text': post('/v2/devices', bodies.text),
  'body: 1 MiB of escapes': post('/v2/devices', bodies.escapes),
  'body: 1 MiB of long numbers': post('/v2/devices', bodies.numbers),
  'body: 20,000 nulls': post('/v2/purposes', bodies.rubbish),
  'configuration: 29,000 senses': post('/v2/devices', configurations.sameSense(14_500)),
  'configuration: 9,900 senses': post('/v2/devices', configurations.senses(9_900)),
  'configuration: 4,900 senses of three': post('/v2/devices', configurations.senses(4_900)),
  'configuration: 1,024 senses': post('/v2/devices', configurations.senses(1_024)),
  'configuration: 9,900 modules': post('/v2/devices', configurations.modules(9_900)),
  'configuration: 9,900 bad modules': post('/v2/devices', configurations.badModules(9_900)),
  'purpose: 256 KiB': post('/v2/purposes', purposeOf(255_000)),
  'purpose: 140 KiB, 20,000 parts': post('/v2/purposes', purposeOf(139_000)),
  'purpose: 9,000 lean causes': post('/v2/purposes', leanPurpose(9_000)),
  'purpose: 9,000 bad causes': post(
    '/v2/purposes',
    leanPurpose(9_000).replaceAll('{"sId":"1"}', '{"sId":1}'),
  ),
  'install: 512 KiB': post(
    '/v2/devices/profile',
    installOf([purposeOf(250_000), purposeOf(250_000).replace('"puId":1', '"puId":2')]),
  ),
  'install: 500 KiB, 20,000 parts': post(
    '/v2/devices/profile',
    installOf([longPurpose, longPurpose.replace('"puId":1', '"puId":2')]),
  ),
  'install: 9,000 lean causes': post('/v2/devices/profile', installOf([leanPurpose(9_000)])),
  'install: 20,000 devices': post(
    '/v2/devices/profile',
    `{"deviceAuthUuids":${payloads.arrayOf(`"${uuid}"`, 19_900)},"purposes":[{"puId":1,"initStId":1,"states":[{"stId":1}]}]}`,
  ),
  'install: 4,600 causes, 1,024 senses': post('/v2/devices/profile', installOf([installed])),
  'install: 10,000 devices': post(
    '/v2/devices/profile',
    `{"deviceAuthUuids":${JSON.stringify(listed.map((each) => each.uuid))},"purposes":[{"puId":1,"initStId":1,"states":[{"stId":1}]}]}`,
  ),
  'evaluation: 4,600 causes': { method: 'GET', path: `/v2/devices/${uuid}/evaluation` },
  'devices: 10,000': { method: 'GET', path: '/v2/devices' },
  'page: OpenAPI': { method: 'GET', path: '/v2/openapi.json' },
  'page: MQTT': { method: 'GET', path: '/docs/mqtt' },
  'page: AsyncAPI': { method: 'GET', path: '/docs/mqtt.json' },
};
const prefix = 'devices/d/up/';
/** Unknown members are looked for in every message, but reported once an hour. */
const mayTell = () => false;
const uplinks: Record<string, [string, string, number?]> = {
  'mqtt: 256 KiB, 1,000 measurements': ['measurements', messages.largeMeasurements],
  'mqtt: 256 KiB, 12,000 keys': ['measurements', messages.largeKeys],
  'mqtt: 256 KiB of one text': ['measurements', messages.largeText],
  'mqtt: 256 KiB of nested arrays': ['measurements', messages.nestedArrays, 4],
  'mqtt: 64 KiB of arrays in an array': ['events', messages.shallowArrays],
  'mqtt: 8,000 keys': ['configuration', messages.keys],
  'mqtt: 1,000 bad events': ['events', messages.badEvents],
  'mqtt: 400 events': ['events', messages.goodEvents],
  'mqtt: an event of 21,000 bad senses': ['events', messages.badSenses],
  'mqtt: 1,000 measurements': ['measurements', messages.measurements],
  'mqtt: 1,000 bad measurements': ['measurements', messages.badMeasurements],
  'mqtt: configuration, 64 KiB': ['configuration', configurations.sameSense(4_500)],
  'mqtt: configuration, 3,800 modules': ['configuration', configurations.modules(3_800)],
};

const print = (name: string, ms: number, more: string | number) =>
  console.log(`| ${name.padEnd(38)} | ${ms.toFixed(1).padStart(7)} | ${more} |`);

for (const [name, ask] of Object.entries(asks)) {
  if (!name.includes(only)) continue;
  const status = await sender.send(ask);
  print(name, await medianPieceMs(() => sender.send(ask)), status);
}
for (const [name, [kind, text, times = 1]] of Object.entries(uplinks)) {
  if (!name.includes(only)) continue;
  const payload = Buffer.from(text);
  const { rejectionsPerMessage: max } = quotas;
  const parse = () => {
    let count = 0;
    for (let n = 0; n < times; n += 1)
      count = parseUplink(prefix + kind, prefix, payload, 1, max, mayTell).rejections.length;
    return count;
  };
  print(name, await medianPieceMs(parse), `${parse()} rejections`);
}
await sender.close();
await http.close();
