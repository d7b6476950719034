import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { enqueueNotifications } from '../../src/notifications/enqueue.ts';
import type { EnqueueOptions } from '../../src/notifications/recipients.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { givenDevice, outcomesOf, pushOf, quotas, smsOf } from './fixtures.ts';

let database: TestDatabase;
const day = 86_400_000;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const options: EnqueueOptions = {
  quotasOf: () => quotas,
  isAllowedNumber: () => true,
  isSmsForAll: false,
  nowTs: 40 * day,
};

async function countDue(): Promise<number> {
  const { rows } = await database.db.query<{ n: number }>(
    `select count(*) as n from notification where state = 'queued' and due_at is not null`,
  );
  return rows[0]?.n ?? 0;
}

describe('writing notifications', () => {
  test('a push becomes one row, due at once, for each token of the account', async () => {
    const owner = await givenDevice(database.db, ['token-aaaa', 'token-bbbb', 'token-aaaa']);
    const before = await countDue();
    await enqueueNotifications(database.db, [pushOf(owner)], options);
    const outcomes = await outcomesOf(database.db, owner);
    expect(outcomes.map((o) => [o.kind, o.state, o.recipient, o.title, o.body])).toEqual([
      ['push', 'queued', '…bbbb', 'Cellar: Too warm', '0x1 21.5 (1 Jan 1970, 00:00 UTC)'],
      ['push', 'queued', '…aaaa', 'Cellar: Too warm', '0x1 21.5 (1 Jan 1970, 00:00 UTC)'],
    ]);
    expect(await countDue()).toBe(before + 2);
  });

  test('an account without tokens is sent no push', async () => {
    const owner = await givenDevice(database.db);
    const before = await countDue();
    await enqueueNotifications(database.db, [pushOf(owner)], options);
    expect(await outcomesOf(database.db, owner)).toEqual([]);
    expect(await countDue()).toBe(before);
  });

  test('an event without a name is named by its number', async () => {
    const owner = await givenDevice(database.db, ['token-aaaa']);
    await enqueueNotifications(database.db, [pushOf(owner, '')], options);
    expect(await outcomesOf(database.db, owner)).toMatchObject([{ title: 'Cellar: Event 3' }]);
  });

  test('a rollback leaves no row', async () => {
    const owner = await givenDevice(database.db);
    const before = await countDue();
    const failing = database.db.transaction(async (tx) => {
      await enqueueNotifications(tx, [smsOf(owner, '+420123456789')], options);
      throw new Error('the event could not be stored');
    });
    await expect(failing).rejects.toThrow('the event could not be stored');
    expect(await outcomesOf(database.db, owner)).toEqual([]);
    expect(await countDue()).toBe(before);
  });

  test('without notifications nothing is written', async () => {
    const before = await countDue();
    await enqueueNotifications(database.db, [], options);
    expect(await countDue()).toBe(before);
  });
});

test.each(['device', 'account'])('removing the %s removes its notifications', async (table) => {
  const owner = await givenDevice(database.db);
  await enqueueNotifications(database.db, [smsOf(owner, '+1')], options);
  const id = table === 'device' ? owner.deviceId : owner.accountId;
  await database.db.query(`delete from ${table} where id = $1`, [id]);
  expect(await outcomesOf(database.db, owner)).toEqual([]);
});
