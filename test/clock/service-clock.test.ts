import { afterEach, expect, test } from 'vitest';
import type { Judgement } from '../../src/clock/belief.ts';
import { believeClock } from '../../src/clock/believed-time.ts';
import { startServiceClock } from '../../src/clock/service-clock.ts';
import type { Sql } from '../../src/db/sql.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

let clock: Awaited<ReturnType<typeof startServiceClock>> | undefined;
afterEach(() => clock?.close());

/** A database whose clock shows what it is told, and that answers after `tookMs`. */
function fake() {
  const state = { dbMs: 1_000_000, monotonicMs: 50, tookMs: 0, isAway: false, asked: 0 };
  const query = async () => {
    state.asked += 1;
    if (state.isAway) throw new Error('away');
    const ts = state.dbMs;
    state.monotonicMs += state.tookMs;
    state.dbMs += state.tookMs;
    return { rows: [{ ts, reckonedTs: null, doubtedTs: null }] };
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
      onChange: () => undefined,
    });
    return clock;
  };
  const askedAgain = async () => {
    const { asked } = state;
    await expect.poll(() => state.asked).toBeGreaterThan(asked + 1);
  };
  return { state, moved, errors, start, askedAgain };
}

test('is the clock of the database, continued by that of the process', async () => {
  const { state, start } = fake();
  const { now } = await start();
  expect(now()).toBe(1_000_000);
  state.isAway = true;
  state.monotonicMs += 250;
  expect(now()).toBe(1_000_250);
});

test('the duration of an answer moves it no further than the answer shows', async () => {
  const { state, moved, start, askedAgain } = fake();
  const { now } = await start();
  state.tookMs = 40;
  await askedAgain();
  expect(Math.abs(now() - state.dbMs)).toBeLessThanOrEqual(40);
  expect(moved).toEqual([]);
});

test('a slow first answer does not make it start with a wrong time', async () => {
  const { state, start } = fake();
  // The answer is slow on its way back, as in a process that opens its connection and has other things to do.
  state.tookMs = 5_000;
  const starting = start();
  state.tookMs = 20;
  const { now } = await starting;
  expect(Math.abs(now() - state.dbMs)).toBeLessThanOrEqual(20);
});

test('starts with the best of a few slow answers', async () => {
  const { state, start } = fake();
  state.tookMs = 3_000;
  const { now } = await start();
  expect(Math.abs(now() - state.dbMs)).toBeLessThanOrEqual(1_500);
  expect(state.asked).toBeLessThan(20);
});

test('jumps with that of the database, and reports it', async () => {
  const { state, moved, start } = fake();
  const { now } = await start();
  state.dbMs += 3_600_000;
  await expect.poll(() => moved).toEqual([3_600_000]);
  expect(now()).toBe(state.dbMs);
});

test('continues while the database is away', async () => {
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
      onChange() {},
    });
  const { rows } = await database.db.query<{ now: number }>('select clock_timestamp() as now');
  const [one, other] = await Promise.all([start(), start()]);
  expect(Math.abs(one.now() - other.now())).toBeLessThan(5_000);
  expect(one.now() - (rows[0]?.now ?? 0)).toBeGreaterThanOrEqual(-1);
  await Promise.all([one.close(), other.close(), database.drop()]);
});

/** A process on the database's own clock, which can be set, with its own row. */
async function real() {
  const database: TestDatabase = await testDatabase();
  const { db } = database;
  const changes: NonNullable<Judgement['change']>[] = [];
  const start = () =>
    startServiceClock({
      db,
      monotonicClock: () => performance.now(),
      askEveryMs: 5,
      onError: () => undefined,
      onMoved: () => undefined,
      onChange: (change) => void changes.push(change),
    });
  const set = (byMs: number) =>
    db.query(`create or replace function service_now() returns timestamptz
                language sql volatile as $$ select clock_timestamp() + interval '${byMs} ms' $$`);
  const readRow = async () => {
    const { rows } = await db.query<{ doubted: boolean; late: number }>(
      `select doubted_at is not null as doubted,
              extract(epoch from clock_timestamp() - reckoned_at)::float8 * 1000 as late
         from believed_time`,
    );
    return rows[0];
  };
  return { ...database, changes, start, set, readRow };
}

const hour = 3_600_000;

test('set back, it is in doubt for all processes and in the row; right again, it is believed', async () => {
  const { changes, start, set, readRow, drop } = await real();
  const [one, other] = [await start(), await start()];
  expect(one.believedTs()).toBeGreaterThan(0);
  expect(await readRow()).toMatchObject({ doubted: false });
  await set(-hour);
  await expect.poll(() => [one.believedTs(), other.believedTs()]).toEqual([null, null]);
  expect(changes[0]).toMatchObject({ to: 'doubted' });
  await expect.poll(readRow).toMatchObject({ doubted: true });
  // The hour between the two clocks, as well as it can be measured here.
  expect(Math.round(one.doubtSpanMs() / 60_000)).toBe(60);
  await set(0);
  await expect.poll(() => one.believedTs() !== null && other.believedTs() !== null).toBe(true);
  expect(await readRow()).toMatchObject({ doubted: false });
  // What was sent under the wrong clock may still be in transit.
  expect(Math.round(one.doubtSpanMs() / 60_000)).toBe(60);
  await Promise.all([one.close(), other.close()]);
  await drop();
});

test('a process that starts with a clock a year ahead is in doubt until the operator says it is right', async () => {
  const { db, changes, start, set, readRow, drop } = await real();
  await (await start()).close();
  await set(365 * 24 * hour);
  const one = await start();
  expect(one.believedTs()).toBe(null);
  expect(changes).toMatchObject([{ to: 'doubted', reason: 'start' }]);
  await expect.poll(readRow).toMatchObject({ doubted: true });
  const late = await start();
  expect(late.believedTs()).toBe(null);
  await expect
    .poll(async () => {
      await believeClock(db);
      return [one.believedTs(), late.believedTs()].includes(null);
    })
    .toBe(false);
  await Promise.all([one.close(), late.close()]);
  expect(await readRow()).toMatchObject({ doubted: false });
  await drop();
});

test('a read-only database keeps no process from starting, nor its clock from being believed', async () => {
  const { db, start, drop } = await real();
  await db.query(`create function refuse() returns trigger language plpgsql as
                  $$ begin raise exception 'read-only'; end $$`);
  await db.query(
    'create trigger refuse before insert or update on believed_time for each row execute function refuse()',
  );
  const one = await start();
  expect(one.believedTs()).toBeGreaterThan(0);
  await one.close();
  await drop();
});

test('what it wrote while ahead is brought back once it is right, by whichever process comes first', async () => {
  const { db, start, set, readRow, drop } = await real();
  const first = await start();
  await set(365 * 24 * hour);
  await expect.poll(() => first.believedTs()).toBe(null);
  await expect.poll(readRow).toMatchObject({ doubted: true });
  // Killed before it could do anything about it.
  await first.close();
  await set(0);
  const times: number[] = [];
  const second = await startServiceClock({
    db,
    monotonicClock: () => performance.now(),
    askEveryMs: 5,
    onError: () => undefined,
    onMoved: () => undefined,
    onChange: () => undefined,
    async bringBack(nowTs) {
      times.push(nowTs);
      if (times.length === 1) throw new Error('The database went away meanwhile.');
    },
  });
  await expect.poll(() => times.length).toBe(2);
  expect(Math.abs((times[1] ?? 0) - second.now())).toBeLessThan(hour);
  const { rows } = await db.query('select is_unsettled from believed_time');
  // What was in transit then may still be written, so it happens again in ten minutes.
  expect(rows).toEqual([{ is_unsettled: true }]);
  await second.close();
  await drop();
});

test('ten minutes later it is brought back once more, and that is recorded', async () => {
  const { db, set, start, readRow, drop } = await real();
  let passedMs = 0;
  const times: number[] = [];
  const first = await start();
  await set(-hour);
  await expect.poll(readRow).toMatchObject({ doubted: true });
  await first.close();
  await set(0);
  const clockMs = () => performance.now() + passedMs;
  const second = await startServiceClock({
    db,
    monotonicClock: clockMs,
    // The process's time and the database's advance alike.
    suspendedMs: () => 0,
    askEveryMs: 5,
    onError: () => undefined,
    onMoved: () => undefined,
    onChange: () => undefined,
    bringBack: async (nowTs) => void times.push(nowTs),
  });
  await expect.poll(() => times.length).toBe(1);
  passedMs = 11 * 60_000;
  await set(passedMs);
  const isUnsettled = async () =>
    (await db.query<{ is_unsettled: boolean }>('select is_unsettled from believed_time')).rows[0]
      ?.is_unsettled;
  await expect.poll(isUnsettled).toBe(false);
  expect(times).toHaveLength(2);
  await second.close();
  await drop();
});
