import type { Database } from '../../src/db/database.ts';
import { readHistoryKind } from '../../src/history/retention.ts';
import { listEvents, type ListedRange } from '../../src/events/store.ts';
import {
  listMeasuredSenses,
  listMeasurements,
  walkBuckets,
} from '../../src/measurements/queries.ts';
import { minuteDevice, rareSense, senses, type Size } from './fill.ts';

/** A query to the database, about a randomly chosen device each time. */
export type Question = { name: string; ask: (deviceId: number) => Promise<unknown> };

const day = 86_400_000;

/** Every combination of parameters of `GET /v2/events/{uuid}`, and the queries of dashboards for measurements. */
export async function listQuestions(db: Database, size: Size, nowTs: number): Promise<Question[]> {
  const kind = await readHistoryKind(db);
  const ranges: [string, Partial<ListedRange>][] = [
    ['', {}],
    [' start', { start: nowTs - 30 * day }],
    [' end', { end: nowTs - 45 * day }],
    [' start end', { start: nowTs - 60 * day, end: nowTs - 53 * day }],
  ];
  const wanted: [string, string[] | undefined][] = [
    ['', undefined],
    [' senses', senses.slice(0, 1)],
    [' three senses', [...senses.slice(2, 4), rareSense]],
    [' rare sense', [rareSense]],
  ];
  const questions: Question[] = [];
  for (const type of [undefined, 'device', 'sense'] as const) {
    for (const [sensesName, sIds] of wanted) {
      for (const [rangeName, range] of ranges) {
        const filter = { type: type && [type], senses: sIds, start: 0, ...range };
        questions.push({
          name: `events${type ? ` type ${type}` : ''}${sensesName}${rangeName}`,
          ask: (deviceId) => listEvents(db, { deviceId, ...filter }, nowTs),
        });
      }
    }
  }
  const pages = await hundredthPages(db, size);
  questions.push(
    {
      name: 'events, hundredth page',
      ask: (deviceId) => listEvents(db, { deviceId, start: 0, after: pages.get(deviceId) }, nowTs),
    },
    {
      name: 'events three senses, hundredth page',
      ask: (deviceId) =>
        listEvents(
          db,
          { deviceId, senses: senses.slice(2, 5), start: 0, after: pages.get(deviceId) },
          nowTs,
        ),
    },
    {
      name: 'measurements, a page of 1,000 of all senses',
      ask: async (deviceId) => {
        const range = { senses: await listMeasuredSenses(db, deviceId), start: 0, end: nowTs };
        await listMeasurements(db, range, 1_001, nowTs);
      },
    },
    {
      name: 'measurements, one sense in hours over 90 days',
      ask: async () => {
        const senses = await listMeasuredSenses(db, minuteDevice(size));
        const range = { senses, start: 0, end: nowTs };
        for await (const page of walkBuckets(db, kind, range, {
          width: { count: 1, unit: 'h' },
          tz: 'UTC',
          nowTs,
        }))
          void page;
      },
    },
    {
      name: 'measurements, one sense in quarters of an hour over a week',
      ask: async () => {
        const start = nowTs - 7 * day;
        const range = {
          senses: await listMeasuredSenses(db, minuteDevice(size)),
          start,
          end: nowTs,
        };
        for await (const page of walkBuckets(db, kind, range, {
          width: { count: 15, unit: 'm' },
          tz: 'UTC',
          nowTs,
        }))
          void page;
      },
    },
  );
  return questions;
}

/**
 * The start of each device's hundredth page of events, or of the middle page if that would be among the last: after the
 * end of a history there is almost nothing to read or to open.
 */
async function hundredthPages(db: Database, { devices }: Size) {
  const pages = new Map<number, [number, string]>();
  for (let deviceId = 1; deviceId <= Math.min(devices, 50); deviceId += 1) {
    const { rows } = await db.query<{ ts: number; key: string }>(
      `select ts, key from event where device_id = $1 order by ts desc, key desc limit 1980`,
      [deviceId],
    );
    const before = rows[Math.min(989, Math.floor(rows.length / 2))];
    if (before) pages.set(deviceId, [before.ts, before.key]);
  }
  return pages;
}

export type Figures = { p50: number; p99: number };

/**
 * Milliseconds at the database, including planning and the round trip. The same query goes to each database in turn, so
 * that other work of the machine affects all alike. The first ones are not counted.
 */
export async function timeQuestions(
  questions: Question[],
  devices: number,
  runs: number,
): Promise<Figures[]> {
  const times = questions.map((): number[] => []);
  for (let run = -20; run < runs; run += 1) {
    const deviceId = 1 + Math.floor(Math.random() * Math.min(devices, 50));
    for (const [i, { ask }] of questions.entries()) {
      const startedMs = performance.now();
      await ask(deviceId);
      if (run >= 0) times[i]?.push(performance.now() - startedMs);
    }
  }
  return times.map((list) => {
    const sorted = list.sort((a, b) => a - b);
    const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0;
    return { p50: at(0.5), p99: at(0.99) };
  });
}
