import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as app from '../events/app.ts';
import { databaseKinds } from '../support/database.ts';
import { blocksOf, readProjectFile } from '../docs/readme.ts';
import { pointsIn } from './harness.ts';

const t0 = Date.UTC(2026, 5, 1);

describe.each(databaseKinds)('measurements on %s', (kind) => {
  let history: app.OwnHistory;
  const { store, list, walk, pathOf } = pointsIn(() => history);
  beforeAll(async () => {
    history = await app.openHistory(kind);
  });
  afterAll(() => history?.close());

  test('come newest first, numbers and positions, exactly as they were sent', async () => {
    const device = await app.newDevice(history.db);
    const vals = [1.1, -0.1, 5e-324, 1.7976931348623157e308, 1e21, 123456789.12345679, 0];
    await store(device, ...vals.map((val, i) => ({ sId: '0x1', ts: t0 + i, val })));
    await store(device, { sId: '0xAB', ts: t0 + 100, val: 52.5, long: -13.25 });
    const points = await list(device);
    expect(points[0]).toEqual({ sId: '0xAB', ts: t0 + 100, val: { lat: 52.5, long: -13.25 } });
    expect(points.slice(1)).toEqual(
      vals.map((val, i) => ({ sId: '0x1', ts: t0 + i, val })).reverse(),
    );
  });

  test('are found by the query in the documentation', async () => {
    const device = await app.newDevice(history.db);
    const ts = Date.now() - 1_000;
    await store(device, { sId: '0x1', ts, val: 1 }, { sId: '0x1', ts, val: 2 });
    const [shown = ''] = blocksOf(readProjectFile('docs/storage.md'), 'sql');
    const { rows } = await history.db.query(shown.replace('…', device.uuid));
    expect(rows).toEqual([1, 2].map((val) => ({ uuid: device.uuid, s_id: '0x1', ts, val })));
  });

  test('are paged in one order without a gap or a repetition, also within a millisecond', async () => {
    const value = fc.oneof(
      fc.integer({ min: -2, max: 2 }).map((val) => ({ val })),
      fc.record({ val: fc.constant(1), long: fc.integer({ min: -1, max: 1 }) }),
    );
    const row = fc
      .tuple(fc.constantFrom('0x1', '0xA', '0xa', '0x10'), fc.nat(3), value)
      .map(([sId, n, place]) => ({ sId, ts: t0 + n, ...place }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { maxLength: 40 }),
        fc.integer({ min: 1, max: 7 }),
        fc.option(fc.subarray(['0x1', '0xA', '0xa', '0x10'], { minLength: 1 })),
        fc.option(fc.nat(4)),
        fc.option(fc.nat(4)),
        async (rows, limit, senses, one, other) => {
          const isOrdered = one === null || other === null || one <= other;
          const [start, end] = isOrdered ? [one, other] : [other, one];
          const device = await app.newDevice(history.db);
          await store(device, ...rows);
          const query = new URLSearchParams({ limit: String(limit) });
          if (senses) query.set('senses', senses.join(','));
          if (start !== null) query.set('start', String(t0 + start));
          if (end !== null) query.set('end', String(t0 + end));
          const found = await walk(device, query.toString());
          const expected = new Set(
            rows
              .filter(({ sId }) => !senses || senses.includes(sId))
              .filter(({ ts }) => ts >= t0 + (start ?? 0) && ts <= t0 + (end ?? 9))
              .map((r) => JSON.stringify([r.sId, r.ts, 'long' in r ? [r.val, r.long] : r.val])),
          );
          const names = found.map(({ sId, ts, val }) =>
            JSON.stringify([sId, ts, typeof val === 'number' ? val : [val.lat, val.long]]),
          );
          expect(new Set(names)).toEqual(expected);
          expect(names).toHaveLength(expected.size);
          expect(found.map(({ ts }) => ts)).toEqual(
            found.map(({ ts }) => ts).sort((a, b) => b - a),
          );
        },
      ),
      { numRuns: 30 },
    );
  });

  test('come as CSV, page by page', async () => {
    const device = await app.newDevice(history.db);
    await store(
      device,
      { sId: '0x1', ts: t0, val: 1.5 },
      { sId: '0x2', ts: t0 + 1, val: 1, long: 2 },
    );
    await store(device, { sId: '0x1', ts: t0 - 1, val: 7 });
    const response = await history.get(pathOf(device, 'limit=2'), device.accountId, {
      accept: 'text/csv',
    });
    expect(response.headers.get('content-type')).toMatch(/^text\/csv/);
    expect(await response.text()).toBe(
      `sId,ts,val,lat,long\r\n0x2,${t0 + 1},,1,2\r\n0x1,${t0},1.5,,\r\n`,
    );
    expect(app.nextOf(response)).toContain('cursor=');
  });

  test('come 1,000 per page', async () => {
    const device = await app.newDevice(history.db);
    await store(
      device,
      ...Array.from({ length: 1_001 }, (_, i) => ({ sId: '0x1', ts: t0 + i, val: i })),
    );
    expect(await list(device, 'limit=5000')).toHaveLength(1_000);
    expect(await walk(device, '')).toHaveLength(1_001);
  });

  test("of another account's device are unknown", async () => {
    const mine = await app.newDevice(history.db);
    const other = await app.newDevice(history.db);
    expect((await history.get(pathOf(other), mine.accountId)).status).toBe(404);
  });

  test.each([
    'limit=0',
    'start=x',
    'bucket=0s',
    'bucket=5',
    'bucket=1w',
    'bucket=1.5h',
    'bucket=9999999999d',
    'cursor=W10',
    ...[
      [9e15, 0, '0x1'],
      [1, 0, '0x1\0'],
      [1, 1_000, '0x1'],
    ].map(tampered),
  ])('are refused for %s', async (query) => {
    const device = await app.newDevice(history.db);
    expect((await history.get(pathOf(device, query), device.accountId)).status).toBe(400);
  });
});

/** A cursor of the right form that no answer ever contained. */
function tampered(cursor: unknown): string {
  return `cursor=${Buffer.from(JSON.stringify(cursor)).toString('base64url')}`;
}
