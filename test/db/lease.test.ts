import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { startLease } from '../../src/db/lease.ts';
import { startProxy } from '../faults/proxy.ts';
import type { Proxy } from '../faults/proxy.ts';
import { testDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';

let database: TestDatabase;
let proxy: Proxy;
let journal: string[];
/** Who learned that another process holds it. */
let waits: string[];
let leases: Awaited<ReturnType<typeof startLease>>[];

beforeAll(async () => {
  database = await testDatabase();
  proxy = await startProxy(Number(new URL(database.url).port));
});
afterEach(() => Promise.all(leases.map((lease) => lease.release(async () => undefined))));
afterAll(async () => {
  await proxy.close();
  await database.drop();
});

/** Waits long enough for a busy machine. */
const patient = { askMs: 20, answerMs: 60_000, forgetMs: 120_000 };
/** Gives up soon. */
const hasty = { askMs: 20, answerMs: 500, forgetMs: 2_500 };

/** Competes, and records what it learns. */
async function contend(who: string, name: string, { url = database.url, pace = patient } = {}) {
  const lease = await startLease({
    connectionString: url,
    name,
    holder: who,
    onHeld: () => journal.push(`${who} holds`),
    onLost: () => journal.push(`${who} lost`),
    onWaiting: () => waits.push(who),
    onError: () => journal.push(`${who} is cut off`),
    pace,
  });
  leases.push(lease);
  return lease;
}

const turns = () => journal.filter((line) => !line.endsWith('is cut off'));

function start(): void {
  journal = [];
  waits = [];
  leases = [];
}

it('is held by one at a time, until work under way is finished', async () => {
  start();
  const first = await contend('first', 'one');
  await contend('second', 'one');
  await contend('somebody else', 'another');
  expect(journal).toEqual(['first holds', 'somebody else holds']);
  await first.release(async () => {
    // Still held while work under way is being finished.
    const { rows } = await database.db.query<{ held: number }>(
      `select count(*)::int as held from pg_locks join pg_stat_activity a using (pid)
        where locktype = 'advisory' and granted and a.application_name = 'first'`,
    );
    expect(rows).toEqual([{ held: 1 }]);
    journal.push('first has finished');
  });
  await expect.poll(() => journal.at(-1)).toBe('second holds');
  expect(journal.slice(2)).toEqual(['first has finished', 'second holds']);
});

it('is not given to a process that stops competing', async () => {
  start();
  const [first, second] = [await contend('first', 'two'), await contend('second', 'two')];
  const readAsked = async () => {
    const { rows } = await database.db.query<{ ts: number }>(
      `select query_start as ts from pg_stat_activity where application_name = 'second'`,
    );
    return rows[0]?.ts ?? 0;
  };
  await second.release(async () => {
    await first.release(async () => undefined);
    const before = await readAsked();
    await expect.poll(readAsked).toBeGreaterThan(before);
  });
  expect(journal).toEqual(['first holds']);
});

it('is lost at once with the session, and then held again by one of them', async () => {
  start();
  await contend('first', 'three');
  await contend('second', 'three');
  await database.db.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'first'`,
  );
  await expect.poll(() => turns().length).toBe(3);
  expect(turns().slice(0, 2)).toEqual(['first holds', 'first lost']);
  expect(turns()[2]).toMatch(/^(first|second) holds$/);
});

it('is given up by a holder without an answer before PostgreSQL takes it away', async () => {
  start();
  const url = new URL(database.url);
  url.port = String(proxy.port);
  await contend('far', 'four', { url: url.href, pace: hasty });
  await contend('near', 'four');
  // No connection ends, so neither side notices anything.
  proxy.stall();
  await expect.poll(() => journal.at(-1), { timeout: 60_000 }).toBe('near holds');
  expect(turns()).toEqual(['far holds', 'far lost', 'near holds']);
  expect(journal.filter((line) => line === 'far is cut off')).toHaveLength(1);
  proxy.heal();
});

it('is left to others by a holder that rests, which competes again after that', async () => {
  start();
  const [first, second] = [await contend('first', 'five'), await contend('second', 'five')];
  await expect.poll(() => waits).toEqual(['second']);
  first.rest();
  await expect.poll(() => journal.at(-1)).toBe('second holds');
  // A resting process does not compete, so nobody holds it then.
  second.rest();
  const countHeld = async () => {
    const { rows } = await database.db.query<{ held: number }>(
      `select count(*)::int as held from pg_locks join pg_stat_activity a using (pid)
        where locktype = 'advisory' and granted and a.application_name in ('first', 'second')`,
    );
    return rows[0]?.held;
  };
  await expect.poll(countHeld).toBe(0);
  expect([first.isThere(), second.isThere()]).toEqual([true, true]);
  second.compete();
  await expect.poll(() => journal.length).toBe(3);
  first.compete();
  await expect.poll(() => waits).toEqual(['second', 'first']);
  // Giving it up is not losing it.
  expect(journal).toEqual(['first holds', 'second holds', 'second holds']);
});
