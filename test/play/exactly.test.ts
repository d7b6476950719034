import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AlarmDecider } from '../../src/alarms/decide.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity, Item, SentMeasurement, Uplink } from '../../src/contract/uplink.ts';
import { compileProfile, type Profile } from '../../src/engine/compile.ts';
import { noteImported } from '../../src/ingest/imported.ts';
import { storeMeasurements } from '../../src/measurements/store.ts';
import { purposes } from '../engine/arbitraries.ts';
import { purposesInTime } from '../engine/arbitraries-in-time.ts';
import {
  forever,
  ingestProcess,
  type IngestProcess,
  insertDevice,
  now,
} from '../ingest/harness.ts';
import { installProfile, uplink } from '../ingest/harness.ts';
import { quotas } from '../notifications/fixtures.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { played, playedAs, recorded, rules } from './recorded.ts';
import { isLong, runs } from '../support/share.ts';

/*
 * Whatever happens to a device, playing what is kept of it gives the events, moves and alarms that were recorded.
 */

let nowTs = now;
let gaps: { fromTs: number; toTs: number | null }[] = [];
const clock = () => nowTs;
let database: TestDatabase;
let processes: IngestProcess[];

beforeAll(async () => {
  database = await testDatabase();
  const notifying = {
    quotasOf: () => quotas,
    isAllowedNumber: () => true,
    isSmsForAll: false,
    ownChannels: [],
  };
  const alarms = new AlarmDecider({
    rules,
    notifying,
    clock,
    eventsLeft: () => Infinity,
    mayTellFirings: () => true,
  });
  const limits = { listeningOf: () => ({ gaps }) };
  // The second one splits messages, and the third forgets what it read.
  processes = [5_000, 3, 5_000].map((maxBatchItems, at) =>
    ingestProcess(database.url, {
      clock,
      alarms,
      limits,
      maxBatchItems,
      ...(at === 2 && { maxRememberedBytes: 1 }),
    }),
  );
});
afterAll(async () => {
  for (const one of processes) await one.close();
  await database.drop();
});

const sId = fc.constantFrom('0x1', '0x1', '0x2');
const sent = fc.record({
  sId,
  val: fc.oneof(
    { weight: 20, arbitrary: fc.integer({ min: -2, max: 4 }) },
    { weight: 1, arbitrary: fc.constantFrom(-0, 2.55, 1e308) },
    { weight: 1, arbitrary: fc.record({ lat: fc.constant(1), long: fc.constantFrom(0, 179) }) },
  ),
  agoMs: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(0, 1, 500, 1_000, 3_000) },
    { weight: 3, arbitrary: fc.constantFrom(10_000, 60_001, 900_001, 4_000_000, 90_000_000) },
    { weight: 2, arbitrary: fc.constantFrom(-1_000, -10_001, -200_000) },
    { weight: 2, arbitrary: fc.constant(null) },
  ),
});
const afterMs = fc.constantFrom(0, 0, 1, 700, 1_000, 2_500, 30_000, 61_000, 400_000, 5_000_000);

const step = fc.record({
  afterMs,
  by: fc.nat(2),
  /** How long the message is under way: others overtake it. */
  underWayMs: fc.constantFrom(0, 0, 0, 0, 20, 3_000, 100_000),
  what: fc.oneof(
    {
      weight: 14,
      arbitrary: fc
        .array(sent, { minLength: 1, maxLength: 5 })
        .map((values) => ({ kind: 'values' as const, values })),
    },
    { weight: 2, arbitrary: fc.nat(9).map((place) => ({ kind: 'again' as const, place })) },
    { weight: 3, arbitrary: fc.constant({ kind: 'tick' as const }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('state' as const),
        puId: fc.nat(1),
        stId: fc.nat(2),
        agoMs: fc.constantFrom(null, 0, 5_000),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('install' as const), which: fc.nat(1) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('answer' as const),
        state: fc.constantFrom('current' as const, 'current' as const, 'rejected' as const),
      }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'request' as const }) },
    { weight: 1, arbitrary: fc.constantFrom({ kind: 'fewer' as const }, { kind: 'all' as const }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('import' as const), values: fc.array(sent) }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'away' as const }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'forget' as const }) },
    { weight: 1, arbitrary: fc.constant({ kind: 'none' as const }) },
  ),
});
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

const configurationOf = (sIds: string[]) => ({
  device: { name: 'played' },
  module: [{ moduleId: 'm1', senses: sIds.map((one) => ({ sId: one })) }],
});

/** Does what the steps say to a new device, and returns it with the profiles that it was given. */
async function live(profiles: Purpose[][], steps: readonly Step[]) {
  nowTs = now;
  gaps = [];
  const { db } = database;
  const device = await insertDevice(db);
  await db.query('update device set configuration = $2 where id = $1', [
    device.deviceId,
    JSON.stringify(configurationOf(['0x1', '0x2'])),
  ]);
  const installed = new Map<string, Profile>();
  const install = async (which: number) => {
    const own = profiles[which] as Purpose[];
    await db.query(
      `update device_profile set state = 'superseded'
        where device_id = $1 and state in ('pending', 'sent', 'received')`,
      [device.deviceId],
    );
    const pId = await installProfile(db, device, own);
    await db.query('update profile set created_at = ms_to_timestamp($2) where id = $1', [
      pId,
      nowTs,
    ]);
    installed.set(pId, compileProfile(pId, own));
    for (const { bus } of processes) bus.publish('device', device);
  };
  await install(0);
  const messages: Uplink[] = [];
  for (const { afterMs: wait, by, underWayMs, what } of steps) {
    nowTs += wait;
    const process = processes[by] as IngestProcess;
    const arrivedTs = nowTs - underWayMs;
    const give = (content: Uplink['content']) =>
      process.ingest.ingest(device, uplink(content, arrivedTs), forever);
    const timed = ({
      sId: of,
      val,
      agoMs,
    }: (typeof what & { kind: 'values' })['values'][number]) => ({
      sId: of,
      val,
      ...(agoMs !== null && { ts: nowTs - agoMs }),
    });
    switch (what.kind) {
      case 'values': {
        const items = what.values.map((one, index): Item<SentMeasurement> => ({
          index,
          value: timed(one),
        }));
        messages.push(uplink({ kind: 'measurements', items }, arrivedTs));
        await process.ingest.ingest(device, messages.at(-1) as Uplink, forever);
        break;
      }
      case 'again': {
        const message = messages.at(-1 - what.place);
        if (message) await process.ingest.ingest(device, { ...message, arrivedTs: nowTs }, forever);
        break;
      }
      case 'tick':
        await new Promise<void>((stored, failed) =>
          process.ingest.tick(device, { isWithdrawn: false, stored, failed }),
        ).catch(() => undefined);
        break;
      case 'state': {
        const { puId, stId, agoMs } = what;
        const report = { puId, stId, ...(agoMs !== null && { ts: nowTs - agoMs }) };
        await give({ kind: 'state', report });
        break;
      }
      case 'install':
        await install(what.which);
        break;
      case 'answer': {
        const pId = [...installed.keys()].at(-1) ?? '';
        await give({ kind: 'profile-answer', answer: { pId, state: what.state } });
        break;
      }
      case 'request':
        await give({ kind: 'profile-request' });
        break;
      case 'fewer':
      case 'all': {
        const sIds = what.kind === 'all' ? ['0x1', '0x2'] : ['0x1'];
        await give({ kind: 'configuration', configuration: configurationOf(sIds) });
        break;
      }
      case 'import':
        await importValues(device, what.values);
        break;
      case 'away':
        gaps = [...gaps, { fromTs: nowTs - wait, toTs: nowTs }];
        break;
      case 'forget':
        for (const { bus } of processes) bus.publish('device', device);
        break;
      case 'none':
        await give({ kind: 'none' });
    }
  }
  return { device, installed };
}

async function importValues(
  device: DeviceIdentity,
  values: readonly { sId: string; val: unknown; agoMs: number | null }[],
): Promise<void> {
  const rows = values.flatMap(({ sId: of, val, agoMs }) =>
    typeof val === 'number' && agoMs !== null
      ? [{ deviceId: device.deviceId, sId: of, ts: nowTs - agoMs, val, long: undefined }]
      : [],
  );
  if (rows.length === 0) return;
  await database.db.transaction(async (tx) => {
    await storeMeasurements(tx, rows);
    await noteImported(tx, rows, nowTs);
  });
  for (const { bus } of processes) bus.publish('device', device);
}

/** The arrivals of a device after these many others. */
async function cutsOf({ deviceId }: DeviceIdentity, cut: readonly number[]): Promise<number[]> {
  const { rows } = await database.db.query<{ arrived: number }>(
    `select arrived from device_input where device_id = $1
      union
     select arrived from measurement join series s on s.id = series_id
      where s.device_id = $1 and arrived is not null
      order by arrived`,
    [deviceId],
  );
  const arrivals = rows.map(({ arrived }) => arrived);
  return cut.toSorted((a, b) => a - b).flatMap((at) => arrivals[at] ?? []);
}

const profile = fc.oneof(purposesInTime, purposes);

const watching = (threshold: object, thresholds: object) =>
  Purpose.parse({
    puId: 0,
    initStId: 0,
    states: [{ stId: 0, events: [{ evId: 0, causes: [{ sId: '0x1', threshold, thresholds }] }] }],
  });
const silent = watching({ noneForMs: 1_000 }, {});
const above = watching({}, { isGt: 0 });
/** Its silence makes the second profile current, and the device then rejects it: the first one is over. */
const rejectedAfterSilence: Step[] = [
  {
    afterMs: 0,
    by: 0,
    underWayMs: 0,
    what: { kind: 'values', values: [{ sId: '0x1', val: 0, agoMs: 0 }] },
  },
  { afterMs: 0, by: 0, underWayMs: 0, what: { kind: 'install', which: 1 } },
  { afterMs: 61_000, by: 0, underWayMs: 0, what: { kind: 'answer', state: 'rejected' } },
  {
    afterMs: 0,
    by: 1,
    underWayMs: 0,
    what: { kind: 'values', values: [{ sId: '0x1', val: 0, agoMs: 0 }] },
  },
];

const values = (...given: (typeof sent extends fc.Arbitrary<infer S> ? S : never)[]) => ({
  kind: 'values' as const,
  values: given,
});
const at = (afterMs: Step['afterMs'], what: Step['what']): Step => ({
  afterMs,
  by: 0,
  underWayMs: 0,
  what,
});
/** The newest value, which was ahead, does not say when the last one arrived; then the device is read anew. */
const hiddenArrival: Step[] = [
  at(0, values({ sId: '0x1', val: 0, agoMs: -10_001 })),
  at(0, values({ sId: '0x1', val: 1, agoMs: 0 })),
  at(1, values({ sId: '0x1', val: 1, agoMs: -1_000 })),
  at(
    0,
    values({ sId: '0x1', val: 0, agoMs: null }, { sId: '0x1', val: { lat: 1, long: 0 }, agoMs: 0 }),
  ),
  at(0, { kind: 'import', values: [{ sId: '0x1', val: 0, agoMs: 0 }] }),
  at(0, values({ sId: '0x1', val: 0, agoMs: -10_001 })),
];

/** Both wait for a time; what the first one does takes all that one transaction of the second process may. */
const twoWaiting = Purpose.parse({
  puId: 0,
  initStId: 0,
  states: [
    {
      stId: 0,
      events: [
        {
          evId: 0,
          actions: { engine: { gotoPuId: 0 } },
          causes: [{ sId: '0x1', threshold: { forMs: 1_000 }, thresholds: { isAny: true } }],
        },
        {
          evId: 1,
          causes: [{ sId: '0x2', threshold: { forMs: 1_000 }, thresholds: { isGt: 0 } }],
        },
      ],
    },
  ],
});
const tickInTwo: Step[] = [
  at(0, values({ sId: '0x2', val: 1, agoMs: -1_000 }, { sId: '0x1', val: 0, agoMs: null })),
  { ...at(5_000_000, { kind: 'tick' }), by: 1 },
  at(0, { kind: 'install', which: 0 }),
  at(700, { kind: 'tick' }),
];

test('what was kept of a device gives what was recorded', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.tuple(profile, profile),
      fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }),
      fc.array(fc.nat(60), { maxLength: 3 }),
      async (profiles, steps, cut) => {
        const { device, installed } = await live(profiles, steps);
        const expected = { ...(await recorded(database.db, device)), caveats: [] };
        const all = {
          device,
          profileOf: (pId: string) => installed.get(pId),
          fromTs: now - 200_000,
          untilTs: nowTs + 1_000_000,
          pieceMs: 3_000_000,
        };
        expect(await played(database.db, all)).toEqual(expected);
        const cuts = await cutsOf(device, cut);
        expect(await played(database.db, { ...all, cuts })).toEqual(expected);
        const candidate = compileProfile('', profiles[1]);
        const whole = await playedAs(database.db, candidate, all);
        expect(await playedAs(database.db, candidate, { ...all, cuts })).toEqual(whole);
      },
    ),
    {
      numRuns: isLong ? 1_000 : runs(200),
      // The nightly run looks for others.
      ...(!isLong && { seed: 20_261_127 }),
      examples: [
        [[[silent], [silent]], rejectedAfterSilence, [0, 1, 2]] as const,
        [[[above], [silent]], hiddenArrival, []] as const,
        [[[twoWaiting], [silent]], tickInTwo, []] as const,
      ],
    },
  );
}, 600_000);
