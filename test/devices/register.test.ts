import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { operator } from '../../src/audit/audit.ts';
import defaults from '../../config/default.ts';
import type { Database } from '../../src/db/database.ts';
import { createRegistration } from '../../src/devices/register.ts';
import { insertAccount } from '../support/accounts.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';

describe.each(databaseKinds)('concurrent registrations, on %s', (kind) => {
  let database: TestDatabase;
  let statements = 0;
  let counted: Database;
  beforeAll(async () => {
    database = await testDatabase(kind);
    counted = {
      ...database.db,
      query: (...args: Parameters<Database['query']>) => {
        statements += 1;
        return database.db.query(...args);
      },
    } as Database;
  });
  afterAll(() => database.drop());

  const account = () => insertAccount(database.db);
  const device = (configuration = '{"device":{},"module":[]}') => ({
    uuid: randomUUID(),
    connectorId: 1,
    configuration,
    name: 'probe',
    labels: [],
    secretId: 'a secret',
    actor: operator,
    ts: 1_700_000_000_000,
  });
  const registered = async (accountId: number) => {
    const { rows } = await database.db.query<{ uuid: string }>(
      'select uuid from device join device_state on device_id = id where account_id = $1',
      [accountId],
    );
    return rows.map(({ uuid }) => uuid).toSorted();
  };

  it('share statements, and different accounts do not wait for each other', async () => {
    const register = createRegistration(counted, defaults.quotas);
    const [one, other] = [await account(), await account()];
    const devices = Array.from({ length: 100 }, () => device());
    statements = 0;
    await Promise.all(
      devices.flatMap((added) => [
        register(one, added),
        register(other, { ...added, uuid: randomUUID() }),
      ]),
    );
    // The first one alone, then fifty, then the rest.
    expect(statements).toBe(6);
    expect(await registered(one)).toEqual(devices.map(({ uuid }) => uuid).toSorted());
    expect(await registered(other)).toHaveLength(100);
  });

  it('share no errors: only the one that cannot be stored is refused', async () => {
    const register = createRegistration(counted, defaults.quotas);
    const id = await account();
    const devices = Array.from({ length: 20 }, (_, n) => device(n === 13 ? 'no JSON' : undefined));
    const outcomes = await Promise.allSettled(devices.map((added) => register(id, added)));
    const failed = outcomes.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []));
    expect(failed).toEqual([13]);
    const good = devices.filter((_, n) => n !== 13).map(({ uuid }) => uuid);
    expect(await registered(id)).toEqual(good.toSorted());
    const { rows } = await database.db.query(
      'select devices, registrations from account_usage where account_id = $1',
      [id],
    );
    expect(rows).toEqual([{ devices: 19, registrations: 19 }]);
  });

  it('are stored as far as there is room, in order', async () => {
    const register = createRegistration(counted, { ...defaults.quotas, devices: 7 });
    const id = await account();
    const devices = Array.from({ length: 30 }, () => device());
    const outcomes = await Promise.allSettled(devices.map((added) => register(id, added)));
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual(
      devices.map((_, n) => n < 7),
    );
    expect(outcomes[29]).toMatchObject({
      reason: { code: 'quota-exceeded', exceeded: { quota: 'devices', limit: 7, used: 7 } },
    });
  });
});
