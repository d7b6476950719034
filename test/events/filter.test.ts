import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { RecordedEvent } from '../../src/contract/event.ts';
import { eventFilterMembers, isMatch } from '../../src/events/filter.ts';
import { listDocumentedRoutes } from '../../src/cli/documented-routes.ts';
import { databaseKinds } from '../support/database.ts';
import { deviceEvent, newDevice, senseEvent, type Device } from './app.ts';
import { readEvents } from './sse.ts';
import { startStreams, t0, timestamps, type Streams } from './streams.ts';

const Query = z.strictObject(eventFilterMembers);

/** Every type, with senses, purposes and states that occur together and alone. */
const recorded = [-3, 0, 1, 2].flatMap((puId, n) =>
  [0, 1, 2].flatMap((stId) =>
    [deviceEvent(t0), senseEvent(t0, '0x1'), senseEvent(t0, '0x1', '0x2'), senseEvent(t0)].map(
      (event, k): RecordedEvent => {
        const ts = t0 + 100 * n + 10 * stId + k;
        const engine = { ...event.cause.engine, puId, stId, ts };
        return { ...event, ts, cause: { ...event.cause, engine } } as RecordedEvent;
      },
    ),
  ),
);

/** What the reference says of a filter, in the plainest way. */
const expectedBy: Record<keyof typeof eventFilterMembers, (asked: string) => typeof recorded> = {
  type: (asked) => recorded.filter(({ type }) => type === asked),
  senses: (asked) =>
    recorded.filter(
      (event) =>
        event.type === 'sense' &&
        event.cause.senses.some(({ sId }) => asked.split(',').includes(sId)),
    ),
  purpose: (asked) => recorded.filter((event) => event.cause.engine.puId === Number(asked)),
  state: (asked) =>
    recorded.filter(({ cause: { engine } }) => `${engine.puId}:${engine.stId}` === asked),
};

const asked = fc.record(
  {
    type: fc.constantFrom('device', 'sense'),
    senses: fc.constantFrom('0x1', '0x2', '0x3,0x2', '0x3'),
    purpose: fc.constantFrom('1', '01', '-3', '0', '9'),
    state: fc.constantFrom('1:0', '1:2', '-3:1', '0:0', '9:9'),
  },
  { requiredKeys: [] },
);

describe.each(databaseKinds)('filters of events on %s', (kind) => {
  let on: Streams;
  let device: Device;
  beforeAll(async () => {
    on = await startStreams(kind);
    device = await newDevice(on.db);
    await on.commit(
      ...recorded.map((event, n): [Device, string, RecordedEvent] => [device, `k${n}`, event]),
    );
  });
  afterAll(() => on?.close());

  test('choose the same events in an export, in a list, and as the predicate of a stream', async () => {
    await fc.assert(
      fc.asyncProperty(asked, async (query) => {
        const expected = Object.entries(query).reduce(
          (left, [name, value]) =>
            left.filter((event) => expectedBy[name as keyof typeof query](value).includes(event)),
          recorded,
        );
        const expectedTimes = expected.map(({ ts }) => ts);
        const taken = recorded.filter(({ type, ts: _ts, ...body }) =>
          isMatch(Query.parse(query), { type, body }),
        );
        expect(timestamps(taken.map(({ ts }) => ({ timestamp: ts })))).toEqual(expectedTimes);
        const text = new URLSearchParams(query).toString();
        const response = await on.history.get(
          `/v2/events?devices=${device.uuid}&${text}`,
          device.accountId,
        );
        if (response.status === 400) {
          // What is refused as a contradiction has no events.
          expect(expectedTimes).toEqual([]);
          return;
        }
        const { events } = (await response.json()) as { events: Record<string, unknown>[] };
        expect(timestamps(events)).toEqual(expectedTimes);
        expect(events.map(({ type }) => type)).toEqual(expected.map(({ type }) => type));
        if (query.purpose !== undefined || query.state !== undefined) return;
        const listed = await on.history.json(`/v2/events/${device.uuid}?${text}`, device.accountId);
        expect(timestamps(listed['events'] as typeof events)).toEqual(
          expectedTimes.toReversed().slice(0, 10),
        );
      }),
      { numRuns: 100 },
    );
  });

  test('choose what a stream is sent, from now on and after a pause', async () => {
    const own = await newDevice(on.db);
    const url = `${on.history.url}/v2/events/${own.uuid}/stream?type=sense&senses=0x2&state=1:2`;
    const commit = async (from: number) =>
      on.commit(
        [own, `a${from}`, senseEvent(t0 + from, '0x1')],
        [own, `b${from}`, deviceEvent(t0 + from + 1)],
        [own, `c${from}`, senseEvent(t0 + from + 2, '0x1', '0x2')],
      );
    const stream = await readEvents(url, own.accountId);
    const all = await on.open(own);
    await commit(0);
    expect(timestamps(await all.until(3))).toEqual([t0, t0 + 1, t0 + 2]);
    expect(timestamps(await stream.until(1))).toEqual([t0 + 2]);
    stream.close();
    all.close();
    await commit(10);
    const resumed = await readEvents(url, own.accountId, stream.lastId());
    expect(timestamps(await resumed.until(1))).toEqual([t0 + 12]);
    resumed.close();
  });

  test.each([
    ['type=device&senses=0x1', 'senses'],
    ['purpose=1&state=2:1', 'state'],
    ['purpose=1&state=12:1', 'state'],
    [`senses=${Array.from({ length: 257 }, (_, n) => n).join()}`, 'senses'],
    ['purpose=x', 'purpose'],
    ['kind=sense', 'kind'],
  ])('of a stream that are wrong are 400, by name: %s', async (query, path) => {
    const response = await on.history.get(`/v2/events/stream?${query}`, device.accountId);
    const body: unknown = await response.json();
    expect([response.status, body]).toMatchObject([400, { errors: [{ path }] }]);
  });
});

test('exports and streams take every filter of events', () => {
  const names = Object.keys(eventFilterMembers);
  const paths = ['/v2/events', '/v2/events/stream', '/v2/events/{deviceAuthUuid}/stream'];
  for (const { path, query } of listDocumentedRoutes().filter((one) => paths.includes(one.path)))
    expect([path, Object.keys((query as z.ZodObject).shape)]).toEqual([
      path,
      expect.arrayContaining(names),
    ]);
});
