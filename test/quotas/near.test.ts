import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import defaults from '../../config/default.ts';
import { enqueueQuotaNotice } from '../../src/notifications/enqueue-direct.ts';
import { levelOf, moreThan, startQuotaWatch, type NearCounts } from '../../src/quotas/near.ts';
import { findUsage, saveOverride } from '../../src/quotas/quotas.ts';
import { QuotaSettings } from '../../src/quotas/settings.ts';
import { useContacts } from '../notifications/contact-fixtures.ts';
import * as given from '../notifications/fixtures.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import { startMailServer } from '../support/smtp.ts';

const { db, closing, start } = useContacts();
const quotas = QuotaSettings.parse({
  ...defaults.quotas,
  devices: 10,
  connections: 10,
  storedBytes: 1_000_000,
});
const dayMs = 86_400_000;

const watches: ReturnType<typeof startQuotaWatch>[] = [];
afterEach(async () => {
  for (const running of watches.splice(0)) await running.close();
});

async function givenAccount(devices: number, measurements = 0): Promise<given.Owner> {
  const owner = await given.givenDevice(db());
  await db().query(
    `insert into account_usage (account_id, devices) values ($1, $2)
     on conflict (account_id) do update set devices = excluded.devices`,
    [owner.accountId, devices],
  );
  if (measurements > 0)
    await db().query(
      `insert into account_activity (account_id, process, day, measurements, events, events_left_out)
       values ($1, gen_random_uuid(), (now() at time zone 'UTC')::date, $2, 0, 0)`,
      [owner.accountId, measurements],
    );
  return owner;
}

type Told = { accountId: number; near: [string, number][] };

/** A process that watches; `look` resolves after a look. */
function watch(clock: () => number = Date.now) {
  const told: Told[] = [];
  let counts: NearCounts = new Map();
  const running = startQuotaWatch({
    db: db(),
    quotas,
    retention: { eventsDays: 365, measurementsDays: 90 },
    clock,
    notify: async (_, accountId, near) => {
      told.push({ accountId, near: near.map(({ quota, used }) => [quota, used]) });
    },
    onLook: (now) => (counts = now),
    onError: (error) => {
      throw error;
    },
  });
  watches.push(running);
  return { told, look: running.look, counts: () => counts };
}

const setDevices = (owner: given.Owner, devices: number) =>
  db().query('update account_usage set devices = $2 where account_id = $1', [
    owner.accountId,
    devices,
  ]);

test.each([
  [null, 10, null],
  [7, 10, null],
  [8, 10, 'near'],
  [9, 10, 'near'],
  [10, 10, 'used-up'],
  [11, 10, 'used-up'],
] as const)('%s of %d is %s', (used, limit, level) => {
  expect(levelOf(used, limit)).toBe(level);
});

describe('a quota near its end', () => {
  test('is reported once, again when it is used up, and after a week', async () => {
    const owner = await givenAccount(8, 8_500);
    await givenAccount(7, 7_000);
    let aheadMs = 0;
    const { told, look, counts } = watch(() => Date.now() + aheadMs);
    await look();
    const { accountId } = owner;
    const first = {
      accountId,
      near: [
        ['devices', 8],
        ['storedBytes', 850_000],
      ],
    };
    expect(told).toEqual([first]);
    expect(counts().get('devices')).toEqual({ near: 1, 'used-up': 0 });
    await look();
    expect(told).toHaveLength(1);
    await setDevices(owner, 10);
    await look();
    expect(told.slice(1)).toEqual([{ accountId, near: [['devices', 10]] }]);
    expect(counts().get('devices')).toEqual({ near: 0, 'used-up': 1 });
    // Fewer again: a higher level was reported already.
    await setDevices(owner, 9);
    await look();
    expect(told).toHaveLength(2);
    aheadMs = 7 * dayMs + 1;
    await look();
    expect(told.slice(2)).toEqual([
      {
        ...first,
        near: [
          ['devices', 9],
          ['storedBytes', 850_000],
        ],
      },
    ]);
    const { rows } = await db().query(
      `select kind, actor, details from account_audit
        where account_id = $1 and kind like 'quota-%' and details ->> 'quota' = 'devices'
        order by id`,
      [accountId],
    );
    expect(rows).toEqual([
      { kind: 'quota-near', actor: 'service', details: { quota: 'devices', used: 8, limit: 10 } },
      {
        kind: 'quota-used-up',
        actor: 'service',
        details: { quota: 'devices', used: 10, limit: 10 },
      },
      { kind: 'quota-near', actor: 'service', details: { quota: 'devices', used: 9, limit: 10 } },
    ]);
  });

  test('counts the connections of the connector that has most', async () => {
    const connect = async (owner: given.Owner, connector: number, count: number) => {
      for (let n = 0; n < count; n += 1)
        await db().query(
          `with made as (insert into device (account_id, connector_id, configuration)
                         values ($1, $2, '{}') returning id)
           insert into presence (device_id, connector_id, connected) select id, $2, $3 from made`,
          [owner.accountId, connector, n < count - 1],
        );
    };
    const [spread, dense] = [await givenAccount(0), await givenAccount(0)];
    for (const connector of [71, 72, 73]) await connect(spread, connector, 4);
    await connect(dense, 71, 9);
    const { told, look, counts } = watch();
    await look();
    expect(told).toEqual([{ accountId: dense.accountId, near: [['connections', 8]] }]);
    expect(counts().get('connections')).toEqual({ near: 1, 'used-up': 0 });
    const usage = await findUsage(db(), spread.accountId);
    expect(usage?.used.connections).toBe(3);
  });

  test('is reported by one of several processes that look at once', async () => {
    const owner = await givenAccount(9);
    const processes = [watch(), watch(), watch()];
    await Promise.all(processes.map(({ look }) => look()));
    const told = processes.flatMap((one) => one.told);
    expect(told).toEqual([{ accountId: owner.accountId, near: [['devices', 9]] }]);
  });

  test('is compared with the account’s own limit', async () => {
    const raised = await givenAccount(10);
    const lowered = await givenAccount(4);
    for (const [{ accountId }, value] of [
      [raised, 100],
      [lowered, 5],
    ] as const)
      await db().query(`insert into account_quota values ($1, 'devices', $2)`, [accountId, value]);
    const { told, look } = watch();
    await look();
    expect(told).toEqual([{ accountId: lowered.accountId, near: [['devices', 4]] }]);
  });
});

describe.each(databaseKinds)('usage, on %s', (kind) => {
  const small = { ...defaults.quotas, devices: 2, keys: 1, eventsPerDay: 10, purposes: 5 };
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());

  async function account(devices: number): Promise<number> {
    const { rows } = await database.db.query<{ id: number }>(
      `insert into account (email, email_normal, password_hash)
       select address, address, 'none' from (select gen_random_uuid() || '@example.org') as a (address)
       returning id`,
    );
    const id = rows[0]?.id ?? 0;
    await database.db.query('insert into account_usage (account_id, devices) values ($1, $2)', [
      id,
      devices,
    ]);
    return id;
  }
  /** What a process that starts now notifies of, as if nobody had been told before. */
  async function list() {
    await database.db.query('delete from account_audit');
    const found: [number, string, string | null][] = [];
    const errors: unknown[] = [];
    const running = startQuotaWatch({
      db: database.db,
      quotas: small,
      retention: { eventsDays: 365, measurementsDays: 90 },
      clock: Date.now,
      notify: async (_, accountId, near) => {
        for (const { quota, used, limit } of near)
          found.push([accountId, quota, levelOf(used, limit)]);
      },
      onLook: () => undefined,
      onError: (error) => void errors.push(error),
    });
    await running.close();
    expect(errors).toEqual([]);
    return found;
  }

  test("is compared with each account's limit, and a daily quota is today's", async () => {
    expect(await list()).toEqual([]);
    await account(1);
    const full = await account(2);
    const larger = await account(2);
    await saveOverride(database.db, larger, 'devices', 3);
    expect(await list()).toEqual([[full, 'devices', 'used-up']]);
    await database.db.query(
      `insert into account_activity (account_id, process, day, measurements, events, events_left_out)
       select $1, gen_random_uuid(), (now() at time zone 'UTC')::date - day, 0, 4, 2
         from unnest(array[0, 0, 1, 1, 1]) as day`,
      [larger],
    );
    await database.db.query(
      `insert into message_count (kind, account_id, key, day, used)
       values ('sms', $1, '', (now() at time zone 'UTC')::date, 1000)`,
      [larger],
    );
    expect(await list()).toEqual([
      [full, 'devices', 'used-up'],
      [larger, 'eventsPerDay', 'used-up'],
      [larger, 'smsPerDay', 'used-up'],
    ]);
  });
});

test('is reported to the operator when it grows', () => {
  const counts = (devices: number, keys: number): NearCounts =>
    new Map([
      ['devices', { near: 5, 'used-up': devices }],
      ['keys', { near: 0, 'used-up': keys }],
    ]);
  const looks = [new Map(), counts(1, 0), counts(1, 0), counts(3, 1), counts(0, 0), counts(0, 1)];
  const grown = looks.slice(1).map((now, n) => moreThan(looks[n] ?? new Map(), now, 'used-up'));
  expect(grown).toEqual([{ devices: 1 }, {}, { devices: 3, keys: 1 }, {}, { keys: 1 }]);
  expect(moreThan(counts(0, 0), counts(9, 9), 'near')).toEqual({});
});

test.each([
  [
    'en',
    'A quota of your account is almost used up',
    'Devices: 8,123 of 10,000 (81 %)\nStored history: 17,000 MiB of 20,480 MiB (83 %)',
  ],
  [
    'de',
    'Ein Kontingent Ihres Kontos ist fast verbraucht',
    'Geräte: 8.123 von 10.000 (81 %)\nGespeicherte Messwerte und Ereignisse: 17.000 MiB von 20.480 MiB (83 %)',
  ],
])('a mail reports it to confirmed addresses only, in %s', async (language, subject, lines) => {
  const mail = await startMailServer();
  closing.push(mail.close);
  const email = { smtpUrl: mail.url, from: 'service@example.org', timeoutMs: 5_000 };
  const { accountId } = await given.givenDevice(db());
  await db().query('update account set language = $2 where id = $1', [accountId, language]);
  await db().query(
    `insert into contact (account_id, kind, address, address_normal, place, confirmed_at)
     values ($1, 'email', 'no@example.org', 'no@example.org', 0, null),
            ($1, 'email', 'yes@example.org', 'yes@example.org', 1, now()),
            ($1, 'webhook', 'http://127.0.0.1:9/', 'http://127.0.0.1:9/', 2, null)`,
    [accountId],
  );
  await start({ contacts: { email } });
  const near = [
    { accountId, quota: 'devices' as const, used: 8_123, limit: 10_000 },
    { accountId, quota: 'storedBytes' as const, used: 17_000 * 2 ** 20, limit: 20_480 * 2 ** 20 },
  ];
  await db().transaction((tx) =>
    enqueueQuotaNotice(tx, accountId, near, { quotasOf: () => given.quotas, nowTs: Date.now() }),
  );
  const told = await mail.mailTo('yes@example.org');
  expect(told.text.replaceAll('\r', '')).toContain(lines);
  const { rows } = await db().query<{ title: string; recipient: string }>(
    'select title, recipient from notification where account_id = $1',
    [accountId],
  );
  expect(rows).toEqual([{ title: subject, recipient: 'yes@example.org' }]);
});
