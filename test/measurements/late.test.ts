import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  addDevice,
  type Freezer,
  type House,
  listAlarms,
  openHouse,
  send,
  tooWarm,
} from '../alarms/house.ts';
import { openTestDatabase } from '../support/database.ts';

const dayMs = 86_400_000;

const ends: (() => Promise<unknown>)[] = [];
let house: House;
beforeAll(async () => {
  house = await openHouse(ends);
});
afterAll(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

type Run = { fromTs: number; toTs: number; values: number; late: number; extreme: object };
type Late = {
  sId: string;
  values: number;
  unknown: number;
  late: number;
  firstTs?: number;
  lastTs?: number;
  firstArrivedTs?: number;
  lastArrivedTs?: number;
  limits: { above?: number; eventName: string; runs: Run[] }[];
};

async function findLate({ uuid }: Freezer, query: string): Promise<Late[]> {
  const path = `/v2/measurements/${uuid}/late?${query}`;
  return (await house.app.call<{ senses: Late[] }>('GET', path)).senses;
}

type Sent = { sId: string; val: number; ts: number };

/** What is late, by what was sent in which order: the rule, spelled out. */
function lateOf(sent: readonly Sent[], { start, end }: { start: number; end: number }): Sent[] {
  return sent.filter(
    ({ sId, ts }, place) =>
      ts >= start &&
      ts <= end &&
      sent.slice(0, place).some((before) => before.sId === sId && before.ts > ts),
  );
}

/** The runs above 8 of one sense that late values are part of. */
function runsOf(sent: readonly Sent[], late: ReadonlySet<Sent>): Run[] {
  const runs: Sent[][] = [];
  let isOpen = false;
  for (const one of sent.toSorted((a, b) => a.ts - b.ts)) {
    if (one.val > 8 && !isOpen) runs.push([]);
    isOpen = one.val > 8;
    if (isOpen) runs.at(-1)?.push(one);
  }
  return runs.flatMap((run) => {
    const own = run.filter((one) => late.has(one));
    const [first, last] = [run[0], run.at(-1)];
    if (!first || !last || own.length === 0) return [];
    const { val, ts } = own.reduce((far, one) => (one.val > far.val ? one : far));
    const counts = { values: run.length, late: own.length };
    return [{ fromTs: first.ts, toTs: last.ts, ...counts, extreme: { val, ts } }];
  });
}

test('a month that is uploaded partly late is said as it was sent, for any range', async () => {
  const freezer = await addDevice(house, [tooWarm()]);
  let seed = 20261127;
  const random = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return seed / 2 ** 32;
  };
  const now = Date.now();
  const from = now - 30 * dayMs;
  // Every ms once for each sense: of two values of a millisecond neither is late.
  const times = new Set<string>();
  const sent: Sent[] = [];
  for (let n = 0; n < 60; n += 1) {
    const message: Sent[] = [];
    // Most messages are of their day, some are a backlog from anywhere before.
    const isBacklog = random() < 0.3;
    for (let m = 0; m < 20; m += 1) {
      const sId = random() < 0.7 ? '0x01' : '0x02';
      const until = isBacklog ? from + n * (dayMs / 2) : from + (n + 1) * (dayMs / 2);
      const since = isBacklog ? from : until - dayMs / 2;
      const ts = Math.floor(since + random() * (until - since));
      if (times.has(`${sId} ${ts}`)) continue;
      times.add(`${sId} ${ts}`);
      message.push({ sId, val: Math.round(random() * 100) / 10, ts });
    }
    // Within a message, values are evaluated in the order of their times.
    sent.push(...message.toSorted((a, b) => a.ts - b.ts));
    await freezer.device.publish('up/measurements', message);
  }
  let limited = 0;
  for (let n = 0; n < 12; n += 1) {
    const [start = 0, end = 0] =
      n === 0
        ? [from, now]
        : [random(), random()].map((at) => Math.floor(from + at * (now - from))).toSorted();
    const late = lateOf(sent, { start, end });
    const found = await findLate(freezer, `start=${start}&end=${end}`);
    for (const sId of ['0x01', '0x02']) {
      const own = late.filter((one) => one.sId === sId);
      const said = found.find((sense) => sense.sId === sId);
      expect(said?.late ?? 0).toBe(own.length);
      if (!said) continue;
      const inRange = sent.filter((one) => one.sId === sId && one.ts >= start && one.ts <= end);
      const tss = own.map(({ ts }) => ts);
      expect(said).toMatchObject({
        values: inRange.length,
        unknown: 0,
        firstTs: Math.min(...tss),
        lastTs: Math.max(...tss),
      });
      const runs = sId === '0x01' ? runsOf(inRange, new Set(own)) : [];
      limited += runs.length;
      const limit = { puId: 1, stId: 1, evId: 1, eventName: 'too warm', above: 8 };
      expect(said.limits).toEqual(
        runs.length > 0
          ? [
              {
                ...limit,
                runs: runs.slice(0, 50),
                ...(runs.length > 50 ? { moreRuns: runs.length - 50 } : {}),
              },
            ]
          : [],
      );
    }
  }
  expect(limited).toBeGreaterThan(20);
});

test('what came late opened no alarm; what is imported or of an earlier version is unknown', async () => {
  const freezer = await addDevice(house, [tooWarm()]);
  const now = Date.now();
  await send(freezer, 5, now - 1_000);
  const night = now - 3 * dayMs;
  await freezer.device.publish(
    'up/measurements',
    [7, 9, 12, 9, 7].map((val, n) => ({ sId: '0x01', val, ts: night + n * 60_000 })),
  );
  expect(await listAlarms(house, `?device=${freezer.uuid}`)).toEqual([]);
  const [sense] = await findLate(freezer, `start=${now - 30 * dayMs}`);
  expect(sense).toMatchObject({
    sId: '0x01',
    values: 6,
    unknown: 0,
    late: 5,
    firstTs: night,
    lastTs: night + 240_000,
    limits: [
      {
        above: 8,
        runs: [
          {
            fromTs: night + 60_000,
            toTs: night + 180_000,
            values: 3,
            late: 3,
            extreme: { val: 12, ts: night + 120_000 },
          },
        ],
      },
    ],
  });
  const { firstArrivedTs = 0, lastArrivedTs = 0 } = sense ?? {};
  expect(firstArrivedTs).toBeGreaterThanOrEqual(now);
  expect(lastArrivedTs).toBe(firstArrivedTs);
  // As an import, or a version up to 0.4.0, leaves them.
  const db = openTestDatabase(house.service.databaseUrl);
  await db.query(
    'update measurement set arrived = null, nth = null where ts < ms_to_timestamp($1)',
    [now - dayMs],
  );
  await db.close();
  expect(await findLate(freezer, `start=${now - 30 * dayMs}`)).toEqual([
    { sId: '0x01', values: 6, unknown: 5, late: 0, limits: [] },
  ]);
});

test('senses come page by page, and a request for too much says what is wrong', async () => {
  const freezer = await addDevice(house, [tooWarm()]);
  const now = Date.now();
  for (const sId of ['0x01', '0x02'])
    for (const ts of [now - 1_000, now - 2_000])
      await freezer.device.publish('up/measurements', { sId, val: 1, ts });
  const path = `/v2/measurements/${freezer.uuid}/late?start=${now - dayMs}&limit=1`;
  const found: string[] = [];
  for (let next: string | undefined = path; next;) {
    const page = await house.app.page(next);
    found.push(...(page.body as { senses: Late[] }).senses.map(({ sId }) => sId));
    next = page.next;
  }
  expect(found).toEqual(['0x01', '0x02']);
  // The sense where a page ended may be gone by the time of the next.
  const gone = Buffer.from(JSON.stringify('0x01.gone')).toString('base64url');
  expect(await findLate(freezer, `cursor=${gone}`)).toMatchObject([{ sId: '0x02' }]);
  await expect(findLate(freezer, 'start=1&end=yesterday')).rejects.toThrow(/^400 /);
  expect(await findLate(freezer, '')).toHaveLength(2);
  expect(await findLate(freezer, `end=${now - 1_500}&senses=0x02`)).toMatchObject([
    { sId: '0x02', values: 1, late: 1 },
  ]);
  await expect(
    house.app.call('GET', `/v2/measurements/${crypto.randomUUID()}/late?start=0`),
  ).rejects.toThrow(/^404 /);
});
