import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { bringBack, timeColumns } from '../../src/clock/after-leap.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { push } from '../ingest/freezer.ts';
import {
  forever,
  ingestProcess,
  insertDevice,
  installProfile,
  rejections,
  uplink,
  type IngestProcess,
} from '../ingest/harness.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const waits = { ringMaxAgeMs: 15 * minuteMs, reportedForMs: hourMs };
/** An hour, because by its length alone an hour's leap looks like an hour's wait. */
const leaps = [hourMs, 365 * 24 * hourMs];

describe.each(databaseKinds)('after a leap of the clock, on %s', (kind) => {
  let database: TestDatabase;
  let process: IngestProcess;
  let device: DeviceIdentity;
  let nowTs: number;
  /** How far the process's clock has advanced since it is right. */
  let passedMs = 0;
  beforeAll(async () => {
    database = await testDatabase(kind);
    process = ingestProcess(database.url, { clock: () => Date.now() + passedMs });
  });
  beforeEach(async () => {
    device = await insertDevice(database.db);
    nowTs = Date.now();
    passedMs = 0;
  });
  afterAll(async () => {
    await process.close();
    await database.drop();
  });

  const run = async (sql: string, values: unknown[] = []) =>
    (await database.db.query<Record<string, unknown>>(sql, values)).rows;
  /** How many minutes after now the time in a column of the device's or account's only row is; null if it is null. */
  const minutes = async (table: string, column: string) => {
    const owner = { device_due: 'device_id', alarm_snooze: 'device_id', device_mute: 'device_id' }[
      table
    ];
    const [id, by] = owner ? [device.deviceId, owner] : [device.accountId, 'account_id'];
    const [row] = await run(
      `select extract(epoch from ${column} - ms_to_timestamp($2))::float8 / 60 as at
         from ${table} where ${by} = $1`,
      [id, nowTs],
    );
    return row?.['at'] === null || row === undefined ? null : Math.round(Number(row['at']));
  };

  test('every time column is either brought back or left alone for a reason', async () => {
    const rows = await run(
      `select c.table_name || '.' || c.column_name as name
         from information_schema.columns c
         join information_schema.tables t using (table_schema, table_name)
        where c.table_schema = current_schema() and t.table_type = 'BASE TABLE'
          and c.table_name not in ('migration', 'sensorium_schema')
          and (c.data_type = 'date' or c.data_type like 'timestamp%' or c.udt_name = '_timestamptz')`,
    );
    const there = rows.map(({ name }) => String(name)).toSorted();
    const { broughtBack: changed, leftAlone } = timeColumns;
    const decided = new Set([...changed, ...Object.keys(leftAlone)]);
    expect(there.filter((name) => !decided.has(name))).toEqual([]);
    expect(there.length).toBeGreaterThan(80);
    expect(Object.keys(leftAlone).filter((name) => !there.includes(name))).toEqual([]);
    expect(Object.keys(leftAlone).filter((name) => changed.includes(name))).toEqual([]);
  });

  test.each(leaps)('by %d ms, messages are sent when they would have been sent', async (leapMs) => {
    const { accountId } = device;
    const [contact] = await run(
      `insert into contact (account_id, kind, address, address_normal, place, confirmed_at,
                            served_at, busy_until, rests_until, gathers_until, recent)
       select $1, 'email', 'a@example.org', 'a@example.org', 0, now(), at, at + interval '1 minute',
              at + interval '5 minutes', at + interval '2 minutes', array[at]
         from (select ms_to_timestamp($2) as at) a returning id`,
      [accountId, nowTs + leapMs],
    );
    await run(
      `insert into notification (account_id, device_id, kind, contact_id, recipient, title, body, state,
                                 due_at, created_at, changed_at)
       select $1, $2, 'email', $3, 'a@example.org', 't', 'b', 'queued', at + interval '10 minutes', at, at
         from (select ms_to_timestamp($4) as at) a`,
      [accountId, device.deviceId, contact?.['id'], nowTs + leapMs],
    );
    await bringBack(database.db, nowTs, waits);
    expect(await minutes('notification', 'due_at')).toBe(10);
    expect(await minutes('notification', 'created_at')).toBe(0);
    expect(await minutes('contact', 'busy_until')).toBe(1);
    expect(await minutes('contact', 'rests_until')).toBe(5);
    expect(await minutes('contact', 'gathers_until')).toBe(2);
    expect(await minutes('contact', 'served_at')).toBe(0);
    expect(await minutes('contact', 'recent[1]')).toBe(0);
    expect(await minutes('contact', 'last_at')).toBeNull();
    expect(await bringBack(database.db, nowTs, waits)).not.toHaveProperty('notification');
  });

  test.each(leaps)('by %d ms, muting ends when it would have ended', async (leapMs) => {
    const until = [device.deviceId, nowTs + leapMs];
    await run(
      `insert into alarm_snooze (device_id, pu_id, st_id, ev_id, p_id, until_at, snoozed_by, snoozed_at)
       select $1, 1, 1, 1, '', at + interval '20 minutes', 'me', at from (select ms_to_timestamp($2) as at) a`,
      until,
    );
    await run(
      `insert into device_mute (device_id, until_at, muted_by, muted_at)
       select $1, at + interval '20 minutes', 'me', at from (select ms_to_timestamp($2) as at) a`,
      until,
    );
    await bringBack(database.db, nowTs, waits);
    expect(await minutes('alarm_snooze', 'until_at')).toBe(20);
    expect(await minutes('device_mute', 'until_at')).toBe(20);
  });

  const openAlarm = (at: Record<string, number | null>) => {
    const columns = Object.keys(at);
    const places = columns.map((_, n) => `ms_to_timestamp($${n + 4})`);
    return run(
      `insert into alarm (account_id, device_id, device_uuid, p_id, pu_id, st_id, ev_id, tells, is_reported, is_global,
                          since_at, last_firing_at, event, actions, s_ids, repeat_ms, ${columns.join(', ')})
       values ($1, $2, $3, '', 1, 1, 1, 'alarm', true, false, now(), now(), '{}', '{"keepMs": 60000}', '{}', 1800000,
               ${places.join(', ')})`,
      [device.accountId, device.deviceId, device.uuid, ...Object.values(at)],
    );
  };

  test('an alarm that notified nobody is checked within its longest wait, and closes', async () => {
    const leapTs = nowTs + 365 * 24 * hourMs;
    await openAlarm({ next_at: leapTs, ends_at: leapTs, expires_at: leapTs });
    await bringBack(database.db, nowTs, waits);
    expect(await minutes('alarm', 'next_at')).toBe(15);
    expect(await minutes('alarm', 'ends_at')).toBe(1);
    expect(await minutes('alarm', 'expires_at')).toBe(60);
    expect(await minutes('alarm', 'announced_at')).toBeNull();
  });

  test('one that notified notifies again as often as before; one that waits for nothing still does', async () => {
    await openAlarm({ announced_at: nowTs, next_at: nowTs + 365 * 24 * hourMs, ends_at: null });
    await bringBack(database.db, nowTs, waits);
    expect(await minutes('alarm', 'next_at')).toBe(30);
    expect(await minutes('alarm', 'ends_at')).toBeNull();
  });

  test('a closed alarm opens again after as long as it would have', async () => {
    const leapTs = nowTs + 365 * 24 * hourMs;
    await openAlarm({ closed_at: leapTs, again_at: leapTs + hourMs / 2, extreme_due_at: leapTs });
    await bringBack(database.db, nowTs, waits);
    expect(await minutes('alarm', 'closed_at')).toBe(0);
    expect(await minutes('alarm', 'again_at')).toBe(30);
    expect(await minutes('alarm', 'extreme_due_at')).toBe(0);
  });

  test('no mail waits, counts against its recipient, or remains valid for longer than it says', async () => {
    const [leapTs, { accountId }] = [nowTs + 365 * 24 * hourMs, device];
    await run(
      `insert into account_mail (kind, account_id, recipient, recipient_normal, created_at, due_at, busy_until)
       select 'reset', $1, 'a', 'a', at, at, at from (select ms_to_timestamp($2) as at) a`,
      [accountId, leapTs],
    );
    await run(
      `insert into email_change (account_id, email, expires_at) values ($1, 'b', ms_to_timestamp($2))`,
      [accountId, leapTs],
    );
    await run(
      `insert into stream_ticket (hash, account_id, holder_id, is_of_key, asked, expires_at)
       values ($3, $1, gen_random_uuid(), false, '{}', ms_to_timestamp($2))`,
      [accountId, leapTs, Buffer.from(String(accountId))],
    );
    await run(
      `insert into idempotency_key (account_id, owner, hash, request, begun_at, alive_at)
       select $1, gen_random_uuid(), '\\x00', '\\x00', at, at from (select ms_to_timestamp($2) as at) a`,
      [accountId, leapTs],
    );
    await bringBack(database.db, nowTs, waits);
    expect(await minutes('account_mail', 'due_at')).toBe(0);
    expect(await minutes('account_mail', 'created_at')).toBe(0);
    expect(await minutes('account_mail', 'busy_until')).toBe(0);
    expect(await minutes('account_mail', 'done_at')).toBeNull();
    expect(await minutes('email_change', 'expires_at')).toBe(30);
    expect(await minutes('stream_ticket', 'expires_at')).toBeNull();
    expect(await minutes('idempotency_key', 'begun_at')).toBe(0);
    expect(await minutes('idempotency_key', 'alive_at')).toBe(0);
  });

  test('sessions, keys, jobs and processes from then are as if from now', async () => {
    const [leapTs, { accountId }] = [nowTs + 365 * 24 * hourMs, device];
    const session = (createdTs: number) =>
      run(
        `insert into session (id, account_id, kind, created_at, used_at, expires_at)
         select gen_random_uuid(), $1, 'account', ms_to_timestamp($3), at, at + interval '30 days'
           from (select ms_to_timestamp($2) as at) a`,
        [accountId, leapTs, createdTs],
      );
    await session(leapTs);
    await session(nowTs - hourMs);
    await run(
      `insert into api_key (account_id, hash, name, scopes, created_at, expires_at, used_at)
       select $1, $3, 'k', '{}', at, at, at from (select ms_to_timestamp($2) as at) a`,
      [accountId, leapTs, Buffer.from(`key ${accountId}`)],
    );
    await run(
      `insert into job (account_id, action, actor, devices, total, created_at, served_at)
       select $1, '{}', '{}', '{}', 0, at, at from (select ms_to_timestamp($2) as at) a`,
      [accountId, leapTs],
    );
    await run(
      `insert into delivering_process (process, channels, seen_at)
       values (gen_random_uuid(), '{}', ms_to_timestamp($1))`,
      [leapTs],
    );
    await run(
      `insert into history_retention (what, days, next_days, next_at)
       values ('events', 10, 5, ms_to_timestamp($1)) on conflict (what) do update set next_at = excluded.next_at`,
      [leapTs],
    );
    await bringBack(database.db, nowTs, waits);
    expect(await run('select from session where account_id = $1', [accountId])).toHaveLength(1);
    expect(await minutes('session', 'used_at')).toBe(0);
    expect(await minutes('session', 'expires_at')).toBe(30 * 24 * 60);
    expect(await minutes('api_key', 'used_at')).toBe(0);
    // A person chose it.
    expect(await minutes('api_key', 'expires_at')).toBe(365 * 24 * 60);
    expect(await minutes('job', 'served_at')).toBe(0);
    const late = await run(
      `select from delivering_process where seen_at > ms_to_timestamp($1)
       union all
       select from history_retention where next_at > ms_to_timestamp($1 + 86400000)`,
      [nowTs],
    );
    expect(late).toEqual([]);
  });

  test('what a right clock wrote does not change', async () => {
    await openAlarm({ next_at: nowTs + 10 * minuteMs, expires_at: nowTs + 50 * minuteMs });
    await run(
      `insert into account_mail (kind, account_id, recipient, recipient_normal, created_at, due_at, busy_until)
       select 'reset', $1, 'a', 'a', at, at, at from (select ms_to_timestamp($2) as at) a`,
      [device.accountId, nowTs],
    );
    expect(await bringBack(database.db, nowTs, waits)).toEqual({});
  });

  const actions = { ...push, engine: {} };
  const onSense = (threshold: object, thresholds?: object) =>
    Purpose.parse({
      puId: 7,
      initStId: 1,
      states: [
        {
          stId: 1,
          events: [
            {
              evId: 1,
              eventLog: true,
              actions,
              causes: [{ sId: '0x01', threshold, ...(thresholds && { thresholds }) }],
            },
          ],
        },
      ],
    });
  const tick = (): Promise<void> =>
    new Promise((stored, failed) =>
      process.ingest.tick(device, { isWithdrawn: false, stored, failed }),
    );
  const firings = () =>
    process.rings.filter(({ device: { deviceId } }) => deviceId === device.deviceId);

  test.each([
    { what: 'a silence', purpose: onSense({ noneForMs: 1_000 }), ts: null },
    { what: 'a lasting condition', purpose: onSense({ forMs: 1_000 }, { isGt: 8 }), ts: null },
    {
      what: "a lasting condition, by the device's time",
      purpose: onSense({ forMs: 1_000 }, { isGt: 8 }),
      ts: 0,
    },
  ])(
    'people are notified of $what of a device that was last heard by the clock ahead',
    async ({ purpose, ts }) => {
      await installProfile(database.db, device, [purpose]);
      const leapTs = nowTs + 60 * 24 * hourMs;
      const value = { sId: '0x01', val: 9, ...(ts !== null && { ts: nowTs + ts }) };
      const message = uplink({ kind: 'measurements', items: [{ index: null, value }] }, leapTs);
      await process.ingest.ingest(device, message, forever);
      expect(await rejections(database.db, device)).toEqual([]);
      await run(
        'insert into presence (device_id, connected, last_seen_at) values ($1, false, ms_to_timestamp($2))',
        [device.deviceId, leapTs],
      );
      // As far as is known here, the leap was a silence.
      const before = firings().length;
      await bringBack(database.db, Date.now(), waits);
      await tick();
      expect(firings()).toHaveLength(before);
      passedMs = 20_000;
      await tick();
      expect(firings()).toHaveLength(before + 1);
    },
  );
});
