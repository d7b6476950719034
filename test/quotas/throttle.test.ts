import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import defaults from '../../config/default.ts';
import {
  createAccountThrottle,
  startActivity,
  startStorageWatch,
} from '../../src/quotas/activity.ts';
import { EventRate } from '../../src/quotas/rates.ts';
import { insertAccount } from '../support/accounts.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';

const retention = { eventsDays: 10, measurementsDays: 5 };
const dayMs = 86_400_000;

describe('eventsPerSecond', () => {
  let monotonicMs = 0;
  const limitsOf = (accountId: number) => ({ ...defaults.quotas, eventsPerSecond: accountId });
  const rate = () => new EventRate(limitsOf, () => monotonicMs);

  it('allows a burst of ten seconds, then makes the account wait for its debt', () => {
    const own = rate();
    expect(own.waitMs(100)).toBe(0);
    own.take(100, 999);
    expect(own.waitMs(100)).toBe(0);
    own.take(100, 1);
    expect(own.waitMs(100)).toBe(10);
    // What was under way meanwhile counts.
    own.take(100, 500);
    expect(own.waitMs(100)).toBe(5_010);
    monotonicMs += 5_000;
    expect(own.waitMs(100)).toBe(10);
    monotonicMs += 10;
    expect(own.waitMs(100)).toBe(0);
    monotonicMs += 1_000_000;
    own.take(100, 1_000);
    expect(own.waitMs(100)).toBe(10);
  });

  it('applies to each account separately, and forgets those without a debt', () => {
    const own = rate();
    own.take(100, 2_000);
    expect([own.waitMs(100), own.waitMs(200)]).toEqual([10_010, 0]);
    for (let accountId = 1_000; accountId < 6_000; accountId += 1) {
      own.take(accountId, 1);
      monotonicMs += 1;
    }
    expect(own.waitMs(100)).toBe(5_010);
  });
});

describe.each(databaseKinds)('storedBytes, on %s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());

  const account = () => insertAccount(database.db);
  const limit = { storedBytes: 100_000 };
  const limitsOf = () => ({ ...defaults.quotas, ...limit });
  const watch = () => {
    const errors: unknown[] = [];
    const onError = (error: unknown) => errors.push(error);
    return startStorageWatch({
      db: database.db,
      limitsOf,
      retention,
      intervalMs: 1_000_000,
      onError,
    });
  };
  /** What a process of that day counts. */
  async function count(accountId: number, daysAgo: number, measurements: number, events = 0) {
    const errors: unknown[] = [];
    const activity = await startActivity({
      db: database.db,
      limitsOf,
      clock: () => Date.now() - daysAgo * dayMs,
      runUuid: randomUUID(),
      intervalMs: 1_000_000,
      onError: (error) => void errors.push(error),
    });
    activity.count(accountId, { measurements, events, leftOut: 0, inputBytes: 0 });
    await activity.close();
    expect(errors).toEqual([]);
  }

  it('is used up by measurements, events, purposes and profiles, of all processes and days', async () => {
    const [none, old, many, events, stored] = await Promise.all([1, 2, 3, 4, 5].map(account));
    await count(old ?? 0, 6, 1_000);
    await count(many ?? 0, 4, 600);
    await count(many ?? 0, 0, 400);
    await count(events ?? 0, 9, 0, 72);
    await database.db.query(
      `insert into account_usage (account_id, purpose_bytes, profile_bytes)
       values ($1, 60000, 40000), ($2, 99999, 0)`,
      [stored, none],
    );
    const own = await watch();
    const full = [none, old, many, events, stored].map((id) => own.isFull(id ?? 0));
    expect(full).toEqual([false, false, true, true, true]);
    await own.close();
  });

  it('has room again when the quota is raised, or once less is stored', async () => {
    const id = await account();
    await count(id, 0, 1_000);
    const own = await watch();
    expect(own.isFull(id)).toBe(true);
    limit.storedBytes = 100_001;
    expect(own.isFull(id)).toBe(false);
    limit.storedBytes = 100_000;
    expect(own.isFull(id)).toBe(true);
    await database.db.query('update account_activity set day = day - 6 where account_id = $1', [
      id,
    ]);
    await own.look();
    expect(own.isFull(id)).toBe(false);
    await count(id, 0, 1_000);
    await own.look();
    expect(own.isFull(id)).toBe(true);
    await own.close();
  });

  it('reports to each device once a day', async () => {
    const id = await account();
    await count(id, 0, 1_000);
    const storage = await watch();
    const told: string[] = [];
    let nowTs = 10 * dayMs;
    const rate = new EventRate(limitsOf, () => nowTs);
    const holds = createAccountThrottle({
      rate,
      storage,
      clock: () => nowTs,
      tellFull: ({ deviceId }, topic) => told.push(`${deviceId} ${topic}`),
    });
    const other = await account();
    const wait = (accountId: number, deviceId: number) =>
      holds.waits({ deviceId, accountId, uuid: '' }, 'topic');
    expect([holds.waitMs(id), holds.waitMs(other)]).toEqual([1_000, 0]);
    for (const deviceId of [1, 2, 1]) wait(id, deviceId);
    // It waits for its events only.
    wait(other, 3);
    expect(told).toEqual(['1 topic', '2 topic']);
    nowTs += dayMs;
    wait(id, 1);
    wait(id, 1);
    expect(told).toEqual(['1 topic', '2 topic', '1 topic']);
    rate.take(other, 20_000);
    expect(holds.waitMs(other)).toBeGreaterThan(5_000);
    await storage.close();
  });

  it('counts the same as activity', async () => {
    const id = await account();
    const activity = await startActivity({
      db: database.db,
      limitsOf,
      clock: Date.now,
      runUuid: randomUUID(),
      intervalMs: 1_000_000,
      onError: () => {},
    });
    activity.count(id, { measurements: 1_000, events: 0, leftOut: 5, inputBytes: 0 });
    await activity.close();
    const own = await watch();
    expect(own.isFull(id)).toBe(true);
    await own.close();
  });
});
