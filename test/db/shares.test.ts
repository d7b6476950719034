import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { shareOut, type SharedDatabase } from '../../src/db/shares.ts';
import { openTestDatabase, testDatabase, type TestDatabase } from '../support/database.ts';

/** A fifth (1) is not for accounts; one account may use a quarter of the other 4 (1). Some tests use 20. */
const connections = 5;
let database: TestDatabase;
let opened: Database[];

beforeAll(async () => {
  database = await testDatabase();
  opened = [];
});
afterAll(async () => {
  await Promise.all(opened.map((each) => each.close()));
  await database.drop();
});

function share(count = connections, placeTimeoutMs = 60_000): SharedDatabase {
  const db = openTestDatabase(database.url, { maxConnections: count });
  opened.push(db);
  return shareOut(db, { connections: count, wait: (work) => work, placeTimeoutMs });
}

/** Transactions that stay open until they are released, in the order in which they began. */
function createHold({ db, beginWork }: SharedDatabase) {
  const open: (() => void)[] = [];
  const names: string[] = [];
  const all: Promise<unknown>[] = [];
  return {
    names,
    hold(accountId: number, name = String(accountId)) {
      const held = beginWork(accountId).run(() =>
        db.transaction(async () => {
          names.push(name);
          await new Promise<void>((resolve) => open.push(resolve));
        }),
      );
      all.push(held);
      return held;
    },
    letOneGo: () => open.shift()?.(),
    async end() {
      const ended = Promise.all(all);
      let isOver = false;
      void ended.finally(() => (isOver = true)).catch(() => undefined);
      await expect
        .poll(() => {
          while (open.length > 0) open.shift()?.();
          return isOver;
        })
        .toBe(true);
      await ended;
    },
  };
}

it('gives an account a quarter of what accounts have, and reserves a fifth for other work', async () => {
  const shared = share(20);
  const held = createHold(shared);
  for (let n = 0; n < 30; n += 1) void held.hold(1);
  await expect.poll(() => held.names.length).toBe(4);
  for (const accountId of [2, 3, 4, 5]) for (let n = 0; n < 5; n += 1) void held.hold(accountId);
  await expect.poll(() => held.names.length).toBe(16);
  expect(shared.countWaiting()).toBe(50 - 16);
  const free = createHold({ ...shared, beginWork: () => ({ run: (work) => work(), end() {} }) });
  for (let n = 0; n < 4; n += 1) void free.hold(0, 'login');
  await expect.poll(() => free.names.length).toBe(4);
  await Promise.all([held.end(), free.end()]);
});

it('serves another account as soon as a connection is free, however many statements one has queued', async () => {
  const shared = share();
  const held = createHold(shared);
  for (const accountId of [1, 2, 3, 4]) void held.hold(accountId);
  await expect.poll(() => held.names.length).toBe(4);
  for (let n = 0; n < 20; n += 1) void held.hold(1, 'more of 1');
  void held.hold(5, 'of 5');
  await expect.poll(shared.countWaiting).toBe(21);
  held.letOneGo();
  await expect.poll(() => held.names.length).toBe(5);
  expect(held.names[4]).toBe('of 5');
  await held.end();
});

it('runs the statements of a request one after the other, on one connection', async () => {
  const shared = share(20);
  const { db, beginWork } = shared;
  const busy = () =>
    db.query<{ count: number }>(
      `select count(*)::integer as count from pg_stat_activity
        where datname = current_database() and state = 'active' and pid <> pg_backend_pid()
          and query like '%its own connection%'`,
    );
  const statement = `select pg_sleep(0.05) /* its own connection */`;
  const asked = beginWork(1).run(() =>
    Promise.all([
      db.query(statement),
      db.query(statement),
      db.transaction((tx) => tx.query(statement)),
    ]),
  );
  let isOver = false;
  void asked.finally(() => (isOver = true));
  let most = 0;
  while (!isOver) most = Math.max(most, (await busy()).rows[0]?.count ?? 0);
  await asked;
  expect(most).toBe(1);
});

it('lets a transaction finish that also uses another connection', async () => {
  const { db, beginWork } = share();
  const nested = beginWork(1).run(() => db.transaction(() => db.query('select 1')));
  await expect(nested).resolves.toMatchObject({ rowCount: 1 });
});

it('gives up a statement that waits too long, and does not run it', async () => {
  const shared = share(connections, 50);
  const held = createHold(shared);
  const first = held.hold(1, 'first');
  await expect.poll(() => held.names.length).toBe(1);
  await expect(held.hold(1, 'late')).rejects.toMatchObject({
    code: 'unavailable',
    retryAfterSeconds: 5,
  });
  held.letOneGo();
  await first;
  await expect.poll(shared.countWaiting).toBe(0);
  expect(held.names).toEqual(['first']);
});

it("counts work that a request left running as the service's own once it was answered", async () => {
  const shared = share();
  const held = createHold(shared);
  void held.hold(1);
  await expect.poll(() => held.names.length).toBe(1);
  const answered = shared.beginWork(1);
  const left = Promise.withResolvers<void>();
  const behind = answered.run(async () => {
    await left.promise;
    return shared.db.query('select 1');
  });
  answered.end();
  left.resolve();
  await expect(behind).resolves.toMatchObject({ rowCount: 1 });
  await held.end();
});

it('frees the place of a statement that was given up', async () => {
  const db = openTestDatabase(database.url, { maxConnections: connections });
  opened.push(db);
  const { promise: hopeless, reject } = Promise.withResolvers<never>();
  const wait = <T>(work: Promise<T>) => Promise.race([work, hopeless]);
  const {
    db: shared,
    beginWork,
    countWaiting,
  } = shareOut(db, { connections, wait, placeTimeoutMs: 60_000 });
  const stuck = beginWork(1).run(() => shared.query('select pg_sleep(0.3)'));
  const inLine = beginWork(1).run(() => shared.query('select 1'));
  await expect.poll(countWaiting).toBe(1);
  reject(new Error('The database does not answer.'));
  await expect(stuck).rejects.toThrow('does not answer');
  await expect(inLine).rejects.toThrow('does not answer');
  expect(countWaiting()).toBe(0);
});
