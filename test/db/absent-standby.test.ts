import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Committing, Database } from '../../src/db/database.ts';
import { createWriteProbe } from '../../src/db/write-probe.ts';
import { startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/database.ts';
import { withoutStandby, type WithoutStandby } from '../support/synchronous.ts';
import { runOn } from '../support/template.ts';

let cluster: Cluster;
let standby: WithoutStandby;
let db: Database;
beforeAll(async () => {
  cluster = await startThrowAwayCluster({ durable: true });
  standby = withoutStandby(cluster);
  db = openTestDatabase(cluster.url(), { pipeline: true });
  for (const table of ['item', 'device', 'device_state', 'series', 'measurement', 'event'])
    await db.query(`create table public.${table} (n integer)`);
});
beforeEach(() => standby.requireStandby());
afterEach(() => standby.letGo());
afterAll(async () => {
  await db.close();
  await cluster.remove();
});

/** What an operator does about statements that hang. */
const cancelAll = () =>
  runOn(cluster.url(), (client) =>
    client.query(
      `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`,
    ),
  );
const unavailable = { code: 'unavailable', message: expect.stringContaining('standby') as unknown };

it('a transaction that only reads waits for the standby before it commits', async () => {
  const waiting = await standby.watch();
  let isOver = false;
  const reading = db.transaction((tx) => tx.query('select 1')).then(() => (isOver = true));
  await Promise.race([waiting(), reading]);
  expect(isOver).toBe(false);
  await standby.letGo();
  await reading;
});

it('all callers that confirm their reads share a commit', async () => {
  const waiting = await standby.watch();
  const first = db.confirmReads();
  await waiting();
  const others = Array.from({ length: 50 }, () => db.confirmReads());
  expect(new Set(others).size).toBe(1);
  expect(db.pool.totalCount - db.pool.idleCount).toBe(1);
  await standby.letGo();
  await Promise.all([first, ...others]);
});

it.each([
  ['a statement', () => db.query('insert into item values (1)')],
  ['a transaction', () => db.transaction((tx) => tx.query('insert into item values (1)'))],
])('%s whose wait for the standby is cancelled has failed', async (_name, write) => {
  const waiting = await standby.watch('');
  const written = expect(write()).rejects.toMatchObject(unavailable);
  await waiting();
  await cancelAll();
  await written;
  await standby.letGo();
  await expect(db.query('select 1')).resolves.toMatchObject({ rowCount: 1 });
});

it('a transaction behind one whose wait is cancelled fails too', async () => {
  const { promise: committing, resolve } = Promise.withResolvers<Committing>();
  const waiting = await standby.watch();
  const insert = (options: Parameters<Database['transaction']>[1]) =>
    db.transaction((tx) => tx.query('insert into item values (2)'), options);
  const both = Promise.allSettled([
    insert({ onCommitting: resolve }),
    committing.then((behind) => insert({ behind })),
  ]);
  await waiting();
  await cancelAll();
  const reasons = (await both).map((one) => (one.status === 'rejected' ? one.reason : null));
  expect(reasons).toEqual([
    expect.objectContaining({ code: 'unavailable' }),
    expect.objectContaining({ code: 'unavailable' }),
  ]);
});

/** This program's sessions in the server, by the name of its connections. */
async function countSessions(name: string): Promise<number> {
  const { rowCount } = await db.query('select from pg_stat_activity where application_name = $1', [
    name,
  ]);
  return rowCount ?? 0;
}

const insertInTransaction = (own: Database) =>
  own.transaction((tx) => tx.query('insert into item values (3)'));

it.each([
  ['statements', false, (own: Database) => own.query('insert into item values (3)')],
  ['transactions', false, insertInTransaction],
  ['pipelined-transactions', true, insertInTransaction],
  ['confirmed-reads', false, (own: Database) => own.confirmReads()],
])(
  '%s that are given up leave no session behind',
  { timeout: 60_000 },
  async (name, pipeline, write) => {
    const own = openTestDatabase(cluster.url(), {
      maxConnections: 3,
      applicationName: name,
      answerTimeoutMs: 100,
      pipeline,
    });
    let most = 0;
    for (let round = 0; round < 10; round += 1) {
      const given = await Promise.allSettled([write(own), write(own), write(own)]);
      for (const one of given) expect(one).toMatchObject({ reason: { code: 'unavailable' } });
      most = Math.max(most, await countSessions(name));
    }
    // One more ends the others.
    expect(most).toBeLessThanOrEqual(3 + 1);
    await standby.letGo();
    await expect
      .poll(() =>
        write(own).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    await own.close();
    await expect.poll(() => countSessions(name)).toBe(0);
  },
);

it('a pool that is closed while commits wait leaves no session behind', async () => {
  const own = openTestDatabase(cluster.url(), { applicationName: 'closed', maxConnections: 3 });
  const waiting = await standby.watch('');
  const written = own.query('insert into item values (4)').catch((error: unknown) => error);
  await waiting();
  await own.close(0);
  expect(await written).toMatchObject({ code: 'unavailable' });
  await expect.poll(() => countSessions('closed')).toBe(0);
});

it('a probe reports it, and stays in the one session in which it waits', async () => {
  const own = { maxConnections: 1, applicationName: 'probe' };
  const open = () => openTestDatabase(cluster.url(), own);
  const probe = createWriteProbe({ open, look: db, patienceMs: 500 });
  const away = { reason: 'standby-away' };
  for (let time = 0; time < 3; time += 1) await expect.poll(probe.probe).toEqual(away);
  // On a busy machine it may have started again, in a session that replaces the previous one.
  await expect.poll(() => countSessions('probe')).toBe(1);
  await standby.letGo();
  await expect.poll(probe.probe).toBeNull();
  probe.close();
});

it('a probe that is closed while its commit waits leaves no session behind', async () => {
  const own = { maxConnections: 1, applicationName: 'closed-probe' };
  const open = () => openTestDatabase(cluster.url(), own);
  const probe = createWriteProbe({ open, look: db, patienceMs: 500 });
  await expect.poll(probe.probe).toEqual({ reason: 'standby-away' });
  probe.close();
  await expect.poll(() => countSessions('closed-probe')).toBe(0);
});

it('a connection that is closed while connecting leaves no session behind', async () => {
  const own = openTestDatabase(cluster.url(), {
    maxConnections: 1,
    applicationName: 'closed-early',
    answerTimeoutMs: 3_600_000,
  });
  const writing = own.transaction((tx) => tx.query('select')).catch((error: unknown) => error);
  void own.close(0);
  expect(await writing).toBeInstanceOf(Error);
  await expect.poll(() => countSessions('closed-early')).toBe(0);
});
