import { afterEach, expect, test } from 'vitest';
import { startServiceClock, type ServiceClock } from '../../src/db/service-clock.ts';
import type { Sql } from '../../src/db/sql.ts';
import { testDatabase } from '../support/database.ts';

let clock: ServiceClock | undefined;
afterEach(() => clock?.close());

/** A database whose clock says what it is told, `tookMs` after it was asked. */
function fake() {
  const state = { dbMs: 1_000_000, monotonicMs: 50, tookMs: 0, isAway: false, asked: 0 };
  const query = async () => {
    state.asked += 1;
    if (state.isAway) throw new Error('away');
    const ts = state.dbMs;
    state.monotonicMs += state.tookMs;
    state.dbMs += state.tookMs;
    return { rows: [{ ts }] };
  };
  const moved: number[] = [];
  const errors: unknown[] = [];
  const start = async () => {
    clock = await startServiceClock({
      db: { query } as unknown as Sql,
      monotonicClock: () => state.monotonicMs,
      askEveryMs: 2,
      onError: (error) => void errors.push(error),
      onMoved: (byMs) => void moved.push(byMs),
    });
    return clock;
  };
  const askedAgain = async () => {
    const { asked } = state;
    await expect.poll(() => state.asked).toBeGreaterThan(asked + 1);
  };
  return { state, moved, errors, start, askedAgain };
}

test('is the clock of the database, run on by that of the process', async () => {
  const { state, start } = fake();
  const { now } = await start();
  expect(now()).toBe(1_000_000);
  state.isAway = true;
  state.monotonicMs += 250;
  expect(now()).toBe(1_000_250);
});

test('what an answer takes moves it no further than the answer says', async () => {
  const { state, moved, start, askedAgain } = fake();
  const { now } = await start();
  state.tookMs = 40;
  await askedAgain();
  expect(Math.abs(now() - state.dbMs)).toBeLessThanOrEqual(40);
  expect(moved).toEqual([]);
});

test('a slow first answer is no reason to begin with a wrong time', async () => {
  const { state, start } = fake();
  // On its way back, as of a process that opens its connection and has other things to do.
  state.tookMs = 5_000;
  const starting = start();
  state.tookMs = 20;
  const { now } = await starting;
  expect(Math.abs(now() - state.dbMs)).toBeLessThanOrEqual(20);
});

test('begins with the best of a few slow answers', async () => {
  const { state, start } = fake();
  state.tookMs = 3_000;
  const { now } = await start();
  expect(Math.abs(now() - state.dbMs)).toBeLessThanOrEqual(1_500);
  expect(state.asked).toBeLessThan(20);
});

test('jumps with that of the database, and says so', async () => {
  const { state, moved, start } = fake();
  const { now } = await start();
  state.dbMs += 3_600_000;
  await expect.poll(() => moved).toEqual([3_600_000]);
  expect(now()).toBe(state.dbMs);
});

test('runs on while the database is away', async () => {
  const { state, errors, start, askedAgain } = fake();
  const { now } = await start();
  state.isAway = true;
  await askedAgain();
  state.monotonicMs += 1_000;
  expect(now()).toBe(1_001_000);
  expect(errors.length).toBeGreaterThan(0);
});

test('all processes of a database have the same time', async () => {
  const database = await testDatabase();
  const monotonicClock = () => performance.now();
  const start = () =>
    startServiceClock({
      db: database.db,
      monotonicClock,
      onError() {},
      onMoved() {},
    });
  const { rows } = await database.db.query<{ now: number }>('select clock_timestamp() as now');
  const [one, other] = await Promise.all([start(), start()]);
  expect(Math.abs(one.now() - other.now())).toBeLessThan(5_000);
  expect(one.now() - (rows[0]?.now ?? 0)).toBeGreaterThanOrEqual(-1);
  await Promise.all([one.close(), other.close(), database.drop()]);
});
