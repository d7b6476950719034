import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Notifications } from '../../src/notifications/notifications.ts';
import { firedOf, useAlarms } from '../alarms/notify-world.ts';
import { prepareService } from '../faults/service-process.ts';
import * as given from '../notifications/fixtures.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { type Mail, startMailServer } from '../support/smtp.ts';

const { world, closing, decide, addContact, usedBy, db, url } = useAlarms();

const alarms = 431;
const someone = 'someone@example.org';
const usedUp = 'used-up@example.org';
const lock = 4_712;
const never = () => new Promise<never>(() => undefined);

/** Two contacts, one of which may get one more mail today, and a service process that tells them. */
async function givenService() {
  let hangs: 'asked' | 'taken' | null = null;
  let hanging = 0;
  const hangAt = async (where: typeof hangs) => {
    if (hangs !== where) return undefined;
    hanging += 1;
    return never();
  };
  const mail = await startMailServer(
    () => hangAt('asked'),
    () => hangAt('taken'),
  );
  closing.push(mail.close);
  const dir = makeTemporaryDir();
  const settings = join(dir, 'settings.json');
  writeFileSync(settings, JSON.stringify({ notifications: { pollIntervalMs: 50 } }));
  const variables = { DATABASE_URL: url(), CONFIG_FILE: settings, SMTP_URL: mail.url };
  const service = await prepareService({ dir, variables });
  closing.push(service.kill);
  const owner = await given.givenDevice(db());
  await addContact(owner, 'email', someone);
  await addContact(owner, 'email', usedUp);
  await db().query(
    `insert into message_count (kind, account_id, key, day, used)
     values ('recipient', $1, $2, (now() at time zone 'UTC')::date, 199)`,
    [owner.accountId, usedUp],
  );
  const { rows } = await db().query<{ id: number; uuid: string }>(
    `insert into device (account_id, connector_id, name, configuration)
     select $1, 1, 'Room ' || n, '{"device": {}, "module": []}' from generate_series(0, $2) as n
     returning id, uuid`,
    [owner.accountId, alarms],
  );
  const [last, ...owners] = rows.map(({ id, uuid }) => ({
    ...owner,
    deviceId: id,
    deviceUuid: uuid,
  }));
  return {
    mail,
    service,
    owner,
    owners,
    last: last ?? owner,
    hang: (where: typeof hangs) => void ([hangs, hanging] = [where, 0]),
    async someoneHangs() {
      await expect.poll(() => hanging, { timeout: 60_000 }).toBeGreaterThan(0);
    },
  };
}
type Given = Awaited<ReturnType<typeof givenService>>;

/** As the connector of another process decides. */
const rules = {
  quotasOf: () => given.quotas,
  isAllowedNumber: () => true,
  isSmsForAll: false,
  ownChannels: ['email'],
};
const deciding = { rules } as unknown as Notifications;

async function fire(owners: given.Owner[], severity: string): Promise<void> {
  world.nowTs = Date.now();
  const actions = { severity, cloud: { sendPush: true } };
  await decide(
    deciding,
    owners.map((one) => firedOf(one, world.nowTs, { actions })),
  );
}

/** Whoever makes this change waits, and never commits: `work` ends its process. */
async function whileStopped(
  { change, table, when }: { change: string; table: string; when: string },
  work: (someoneWaits: () => Promise<void>) => Promise<void>,
): Promise<void> {
  await db().query(`
    create or replace function stop() returns trigger language plpgsql as
      $$ begin perform pg_advisory_xact_lock_shared(${lock}); return coalesce(new, old); end $$`);
  const waiting = `
    select pid from pg_locks
     where locktype = 'advisory' and objid = $1 and not granted
       and database = (select oid from pg_database where datname = current_database())`;
  await db().transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [lock]);
    await db().query(`
      create trigger stop before ${change} on ${table}
        for each row when (${when}) execute function stop()`);
    const count = async () => (await db().query(waiting, [lock])).rowCount;
    await work(async () => {
      await expect.poll(count, { timeout: 60_000 }).toBeGreaterThan(0);
    });
    await db().query(`select pg_terminate_backend(pid) from (${waiting}) as w`, [lock]);
  });
  await db().query(`drop trigger stop on ${table}`);
}

const killedAsItChanges =
  (change: Parameters<typeof whileStopped>[0]) =>
  ({ service, owners }: Given) =>
    whileStopped(change, async (someoneWaits) => {
      await fire(owners, 'warning');
      await someoneWaits();
      await service.kill();
    });

const killedAsMailServerHangs =
  (where: 'asked' | 'taken') =>
  async ({ service, owners, hang, someoneHangs }: Given) => {
    hang(where);
    await fire(owners, 'warning');
    await someoneHangs();
    await service.kill();
    hang(null);
  };

const bundle = { change: 'delete', table: 'message_bundle' };

test.each([
  ['as it makes the first messages of bundles', killedAsItChanges({ ...bundle, when: 'true' }), 0],
  ['amid making them', killedAsItChanges({ ...bundle, when: 'old.id % 100 = 99' }), 0],
  ['before the mail server has a summary', killedAsMailServerHangs('asked'), 0],
  ['before the mail server says that it has taken one', killedAsMailServerHangs('taken'), 1],
  [
    'after it has said so',
    killedAsItChanges({
      change: 'update of state',
      table: 'notification',
      when: `new.state = 'sent'`,
    }),
    1,
  ],
])(
  'of 431 alarms at once nobody misses one, although the service is killed %s',
  async (_, untilKilled, copies) => {
    const of = await givenService();
    const { mail, service, owner, last } = of;
    await service.start();
    await untilKilled(of);
    const before = idsOf(mail.mails);
    await fire([last], 'critical');
    await service.start();
    await db().query('update contact set busy_until = now()');
    await expect.poll(countWaiting, { timeout: 120_000 }).toBe(0);

    // Only a mail that was there when the service was killed came again, and said the same.
    const ids = idsOf(mail.mails);
    const again = ids.filter((id, n) => ids.indexOf(id) !== n);
    expect(again.length).toBeGreaterThanOrEqual(copies);
    expect(before).toEqual(expect.arrayContaining(again));
    expect(new Set(again).size).toBe(again.length);
    const distinct = mail.mails.filter((_, n) => ids.indexOf(ids[n] ?? '') === n);
    for (const one of mail.mails) {
      const first = distinct[[...new Set(ids)].indexOf(idOf(one))];
      expect(said(one)).toEqual(said(first as Mail));
    }

    // What counts as sent was in the mail that it counts as sent with.
    const { rows } = await db().query<{ id: number; recipient: string; n: number }>(
      `select coalesce(grouped_in, id) as id, recipient, count(*) as n
         from notification where state = 'sent' group by 1, 2 order by 1`,
    );
    const counted = distinct.map((one) => ({
      id: Number(one.headers['x-notification-id']),
      recipient: one.to[0],
      n: howMany(one),
    }));
    expect(counted.toSorted((a, b) => a.id - b.id)).toEqual(rows);

    const to = (address: string) => distinct.filter((one) => one.to.includes(address));
    const told = (address: string) => to(address).reduce((sum, one) => sum + howMany(one), 0);
    expect(told(someone)).toBe(alarms + 1);
    const { rows: held } = await db().query<{ n: number; reasons: number }>(
      `select coalesce(sum(count), 0)::integer as n, coalesce(sum(count) filter (where reason is not null), 0)::integer as reasons
         from notification where recipient = $1 and state = 'held-back'`,
      [usedUp],
    );
    expect(held[0]?.reasons).toBe(held[0]?.n);
    expect(told(usedUp) + (held[0]?.n ?? 0)).toBe(alarms + 1);
    expect(to(usedUp)).toHaveLength(1);
    expect(await usedBy(owner, 'account')).toBe(distinct.length);
    expect(await usedOf(someone)).toBe(to(someone).length);
    expect(await usedOf(usedUp)).toBe(200);
  },
  180_000,
);

/** Messages that wait, also in bundles; what is gathered is sent at once. */
async function countWaiting(): Promise<number | undefined> {
  await db().query('update contact set gathers_until = now() where gathers_until > now()');
  const { rows } = await db().query<{ n: number }>(
    `select (select count(*) from notification where state in ('queued', 'planned'))
            + (select count(*) from message_bundle) as n`,
  );
  return rows[0]?.n;
}

async function usedOf(recipient: string): Promise<number | undefined> {
  const { rows } = await db().query<{ used: number }>(
    `select used from message_count where kind = 'recipient' and key = $1`,
    [recipient],
  );
  return rows[0]?.used;
}

const idOf = ({ headers }: Mail): string => headers['message-id'] ?? '';
const idsOf = (mails: readonly Mail[]): string[] => mails.map(idOf);
const howMany = ({ headers }: Mail): number =>
  Number(/^(\d+) alarms? at/.exec(headers['subject'] ?? '')?.[1] ?? 1);

/** Without the link to unsubscribe, which has the time of sending. */
const said = ({ headers, text }: Mail) => ({
  subject: headers['subject'],
  text: text.replaceAll(/token=[^"\s]+/g, ''),
});
