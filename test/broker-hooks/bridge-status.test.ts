import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  listLiveBridges,
  removeBridgeStatus,
  saveBridgeStatus,
} from '../../src/broker-hooks/bridge-status.ts';
import { databaseKinds, testDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';

const row = (connectorId: number) => ({
  connectorId,
  runUuid: randomUUID(),
  connectorName: `broker-${connectorId}`,
  process: 'here:1',
  isConnected: false,
  sinceTs: 1_700_000_000_123,
  reason: 'refused-credentials',
  isLeaseHeld: null,
  lastInTs: null,
  lastOutTs: null,
  refused: 0,
});

describe.each(databaseKinds)('the status of bridges on %s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());

  const age = (seconds: number) =>
    database.db.query(`update bridge_status set refreshed = refreshed - $1 * interval '1 second'`, [
      seconds,
    ]);
  const listIds = async () =>
    (await listLiveBridges(database.db)).map(({ connectorId }) => connectorId);
  const countRows = async () =>
    (await database.db.query<{ n: number }>('select count(*)::int as n from bridge_status')).rows[0]
      ?.n;

  it("is one row per run, which the run's next status replaces", async () => {
    const first = row(2);
    await saveBridgeStatus(database.db, first);
    await saveBridgeStatus(database.db, {
      ...first,
      isConnected: true,
      reason: null,
      sinceTs: 1_700_000_001_000,
      isLeaseHeld: true,
      lastInTs: 1_700_000_001_500,
      refused: 3,
    });
    expect(await listLiveBridges(database.db)).toEqual([
      {
        connectorId: 2,
        process: 'here:1',
        isConnected: true,
        sinceTs: 1_700_000_001_000,
        reason: null,
        isLeaseHeld: true,
        lastInTs: 1_700_000_001_500,
        lastOutTs: null,
        refused: 3,
      },
    ]);
    expect(await countRows()).toBe(1);
    await removeBridgeStatus(database.db, first);
    expect(await countRows()).toBe(0);
  });

  it('counts as gone once nobody refreshes it, and the next writer removes it', async () => {
    const [dead, alive] = [row(3), row(4)];
    await saveBridgeStatus(database.db, dead);
    await age(20);
    await saveBridgeStatus(database.db, alive);
    expect(await listIds()).toEqual([4]);
    expect(await countRows()).toBe(2);
    await age(100);
    // A process that was suspended for that long returns with its own row, and removes the other.
    await saveBridgeStatus(database.db, alive);
    expect(await listIds()).toEqual([4]);
    expect(await countRows()).toBe(1);
  });

  it('is written by many at once, while all remove the same rows', async () => {
    for (let id = 10; id < 40; id++) await saveBridgeStatus(database.db, row(id));
    await age(100);
    const runs = Array.from({ length: 30 }, (_, place) => row(50 + place));
    await Promise.all(runs.map((run) => saveBridgeStatus(database.db, run)));
    expect(await listIds()).toEqual(runs.map(({ connectorId }) => connectorId));
    expect(await countRows()).toBe(30);
  });
});
