import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { recordEvents } from '../../src/events/store.ts';
import { databaseKinds } from '../support/database.ts';
import * as app from './app.ts';

const { newDevice, newEvent, senseEvent, deviceEvent, nextOf } = app;
const t0 = Date.UTC(2026, 5, 1);
const day = 86_400_000;
/** A month until yesterday: the last two weeks, which are queried first, and those before them. */
const weeksAgo = Date.now() - 31 * day;

type Listed = { timestamp: number; type: string; eventId: string };

describe.each(databaseKinds)('events on %s', (kind) => {
  let history: app.OwnHistory;
  beforeAll(async () => {
    history = await app.openHistory(kind);
  });
  afterAll(() => history?.close());

  async function list(device: app.Device, query: string): Promise<Listed[]> {
    const body = await history.json(`/v2/events/${device.uuid}?${query}`, device.accountId);
    return body['events'] as Listed[];
  }

  async function record(...events: ReturnType<typeof newEvent>[]) {
    return history.db.transaction((tx) => recordEvents(tx, events));
  }

  test('have the fields of the specification', async () => {
    const device = await newDevice(history.db);
    await record(newEvent(device, 'a', senseEvent(t0, '0x1', '0x2')));
    await record(newEvent(device, 'b', deviceEvent(t0 + 1)));
    const engine = { pId: 'p', puId: 1, stId: 2, evId: 3 };
    expect(await list(device, '')).toEqual([
      {
        timestamp: t0 + 1,
        type: 'device',
        deviceAuthUuid: device.uuid,
        eventId: expect.stringMatching(/^\d+$/),
        event: 'purposeChanged',
        cause: { engine: { ...engine, ts: t0 + 1 } },
        newValue: 2,
        oldValue: 1,
      },
      {
        timestamp: t0,
        type: 'sense',
        deviceAuthUuid: device.uuid,
        eventId: expect.stringMatching(/^\d+$/),
        cause: {
          engine: { ...engine, ts: t0 },
          senses: [
            { sId: '0x1', val: 1.5, ts: t0 },
            { sId: '0x2', val: 1.5, ts: t0 },
          ],
        },
        notified: true,
      },
    ]);
  });

  test('that are delivered again are stored once, in one batch or in two', async () => {
    const device = await newDevice(history.db);
    const one = newEvent(device, 'a', senseEvent(t0, '0x1'));
    const other = newEvent(device, 'b', senseEvent(t0, '0x1'));
    expect(await record(one, one)).toEqual([one]);
    expect(await record(one, other)).toEqual([other]);
    expect(await list(device, 'senses=0x1')).toHaveLength(2);
    const feed = 'select from event_feed where device_id = $1';
    expect((await history.db.query(feed, [device.deviceId])).rowCount).toBe(2);
  });

  test('are filtered by type, senses, start and end alike', async () => {
    const device = await newDevice(history.db);
    const someTs = (min: number, max: number) =>
      fc.integer({ min, max }).map((n) => weeksAgo + n * day);
    const events = fc.sample(
      fc.record({
        ts: someTs(0, 30),
        senses: fc.subarray(['0x1', '0x2', '0x3']),
      }),
      { numRuns: 60, seed: 7 },
    );
    const all = events.map(({ ts, senses }, i) =>
      newEvent(device, String(i), senses.length ? senseEvent(ts, ...senses) : deviceEvent(ts)),
    );
    await record(...all);
    const range = fc.option(someTs(-1, 31));
    await fc.assert(
      fc.asyncProperty(
        fc.option(fc.constantFrom('device', 'sense')),
        fc.option(fc.subarray(['0x1', '0x2', '0x3', '0x4'], { minLength: 1 })),
        range,
        range,
        fc.integer({ min: 1, max: 10 }),
        async (type, senses, start, end, limit) => {
          const query = new URLSearchParams({ limit: String(limit) });
          if (type) query.set('type', type);
          if (senses) query.set('senses', senses.join(','));
          if (start) query.set('start', String(start));
          if (end) query.set('end', String(end));
          const expected = all
            .map(({ event }) => event)
            .filter((event) => !type || event.type === type)
            .filter(
              (event) =>
                !senses ||
                (event.type === 'sense' &&
                  event.cause.senses.some(({ sId }) => senses.includes(sId))),
            )
            .filter(({ ts }) => ts >= (start ?? 0) && ts <= (end ?? Infinity))
            .map(({ ts }) => ts)
            .sort((a, b) => b - a)
            .slice(0, limit);
          const found = await list(device, query.toString());
          expect(found.map(({ timestamp }) => timestamp)).toEqual(expected);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('are paged without a gap or a repetition while others arrive', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 60 }),
        fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 10 }),
        fc.integer({ min: 1, max: 10 }),
        fc.constantFrom('', '&type=sense', '&senses=0x1,0x2'),
        async (before, meanwhile, limit, filter) => {
          const device = await newDevice(history.db);
          const event = (n: number, i: number) =>
            newEvent(device, `k${i}`, senseEvent(weeksAgo + n * 6 * day, '0x1', '0x2'));
          await record(...before.map(event));
          const known = await history.db.query<{ seq: number }>(
            'select seq from event where device_id = $1',
            [device.deviceId],
          );
          const seen: string[] = [];
          let at = `/v2/events/${device.uuid}?limit=${limit}${filter}`;
          for (let i = 0; ; i += 1) {
            const response = await history.get(at, device.accountId);
            const { events } = (await response.json()) as { events: Listed[] };
            seen.push(...events.map(({ eventId }) => eventId));
            const late = meanwhile[i];
            if (late !== undefined) await record(event(late, 1_000 + i));
            const next = nextOf(response);
            if (next === null) break;
            at = next;
          }
          expect(new Set(seen).size).toBe(seen.length);
          expect(seen).toEqual(expect.arrayContaining(known.rows.map(({ seq }) => String(seq))));
        },
      ),
      { numRuns: 25 },
    );
  });

  test('are paged when thousands share a millisecond', async () => {
    const device = await newDevice(history.db);
    const many = Array.from({ length: 2_000 }, (_, i) =>
      newEvent(device, `k${i}`, senseEvent(t0, '0x1')),
    );
    await record(...many);
    const seen = new Set<string>();
    let at: string | null = `/v2/events/${device.uuid}`;
    while (at !== null) {
      const response: Response = await history.get(at, device.accountId);
      const { events } = (await response.json()) as { events: Listed[] };
      expect(events.length).toBeGreaterThan(0);
      for (const { eventId } of events) seen.add(eventId);
      at = nextOf(response);
    }
    expect(seen.size).toBe(2_000);
  });

  test("of another account's device give the same answer as those of no device", async () => {
    const mine = await newDevice(history.db);
    const other = await newDevice(history.db);
    for (const uuid of [other.uuid, crypto.randomUUID(), 'x']) {
      expect((await history.get(`/v2/events/${uuid}`, mine.accountId)).status).toBe(404);
    }
  });

  test.each([
    'limit=0',
    'limit=x',
    'start=-1',
    'end=9e9',
    'end=99999999999999999',
    'type=account',
    'cursor=x',
    'cursor=WzEsMl0',
    ...[
      [9e15, ''],
      [-1, ''],
      [1, 'a\0'],
      [1, '\ud800'],
    ].map(tampered),
  ])('are not listed for %s', async (query) => {
    const device = await newDevice(history.db);
    const response = await history.get(`/v2/events/${device.uuid}?${query}`, device.accountId);
    expect(response.status).toBe(400);
  });

  test('take a limit above 10 as 10, and the outermost times', async () => {
    const device = await newDevice(history.db);
    await record(
      ...Array.from({ length: 12 }, (_, i) => newEvent(device, `${i}`, deviceEvent(t0 + i))),
    );
    expect(await list(device, 'limit=500')).toHaveLength(10);
    expect(await list(device, 'start=0&end=8640000000000000&limit=3')).toHaveLength(3);
  });
});

/** A cursor of the right form that no answer ever contained. */
function tampered(cursor: unknown): string {
  return `cursor=${Buffer.from(JSON.stringify(cursor)).toString('base64url')}`;
}
