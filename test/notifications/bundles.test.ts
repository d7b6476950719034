import { beforeEach, expect, test } from 'vitest';
import type { AlarmSignal } from '../../src/contract/alarm.ts';
import { bundleMessages, type DecidedMessage } from '../../src/notifications/bundles.ts';
import { unbundle } from '../../src/notifications/ended.ts';
import type { Notifications } from '../../src/notifications/notifications.ts';
import { endAnnouncements, giveUpOld, putOffPlanned } from '../../src/notifications/outbox.ts';
import { endedOf, firedOf, minuteMs, useAlarms } from '../alarms/notify-world.ts';
import { startHookReceiver } from '../support/hook-receiver.ts';
import * as given from './fixtures.ts';

const { world, closing, start, decide, addContact, usedBy, db } = useAlarms();

/** Decides as a process that delivers nothing, so that what is bundled stays so. */
const silent = {
  rules: {
    quotasOf: () => world.quotas,
    isAllowedNumber: () => true,
    isSmsForAll: true,
    ownChannels: ['webhook'],
  },
} as unknown as Notifications;

const alarms = 12;
const evIds = Array.from({ length: alarms }, (_, n) => n + 1);

/** 12 alarms, of which 20 webhooks (or fewer) are told: 240 messages, of which a transaction writes 200. */
async function givenStorm({
  url = 'http://127.0.0.1:1',
  contacts = 20,
  ...more
}: { url?: string; contacts?: number; afterMs?: number; whenOver?: boolean } = {}) {
  world.nowTs = Date.parse('2026-11-22T10:00:00Z');
  const owner = await given.givenDevice(db());
  for (let n = 0; n < contacts; n += 1) await addContact(owner, 'webhook', `${url}/${n}`, more);
  return owner;
}

const fire = (owner: given.Owner) =>
  evIds.map((evId) => firedOf(owner, world.nowTs, { evId, name: `event ${evId}` }));

const over = (owner: given.Owner): AlarmSignal =>
  ({
    ...endedOf(owner, world.nowTs),
    of: evIds.map((evId) => ({ puId: 1, stId: 2, evId })),
  }) as AlarmSignal;

async function stored() {
  const { rows } = await db().query<{ written: number; bundles: string[] }>(
    `select (select count(*)::int from notification) as written,
            array(select holds from message_bundle order by id) as bundles`,
  );
  return rows[0];
}

/** Of bundles that were set aside. */
let errors: unknown[] = [];
beforeEach(() => void (errors = []));

const unbundleNow = (more: { signal?: AbortSignal } = {}) =>
  unbundle(db(), {
    quotasOf: () => world.quotas,
    clock: () => world.nowTs,
    onError: (error) => void errors.push(error),
    ...more,
  });

test('of a storm of alarms a part is bundled, and everybody is told once', async () => {
  const receiver = await startHookReceiver();
  closing.push(receiver.close);
  const owner = await givenStorm({ url: receiver.url });
  const events = await decide(silent, fire(owner));
  expect(events.every(({ notified }) => notified)).toBe(true);
  expect(await stored()).toEqual({ written: 200, bundles: ['queued', 'queued'] });
  expect(await usedBy(owner, 'webhook')).toBe(240);
  await start();
  await expect.poll(() => receiver.received.length, { timeout: 60_000 }).toBe(240);
  const told = receiver.received.map(({ url, body }) => {
    const { type, data } = JSON.parse(body) as { type: string; data: { title: string } };
    return `${type} ${data.title} ${url}`;
  });
  const expected = evIds.flatMap((evId) =>
    Array.from({ length: 20 }, (_, n) => `alarm.opened Cellar: event ${evId} /${n}`),
  );
  expect(new Set(told)).toEqual(new Set(expected));
  const isDone = async () =>
    (await db().query(`select from alarm where told <> 'told'`)).rowCount === 0;
  await expect.poll(isDone).toBe(true);
  expect(await stored()).toEqual({ written: 240, bundles: [] });
  expect(await usedBy(owner, 'webhook')).toBe(240);
});

test('messages are the same, bundled or not', async () => {
  await decide(silent, fire(await givenStorm()));
  await unbundleNow();
  const { rows } = await db().query<{ number: number; rows: number }>(
    `select count(distinct (to_jsonb(n) - array['id', 'title', 'body', 'engine', 'data', 'alarm_id',
                                                'recipient', 'contact_id'])::text)::int as number,
            count(*)::int as rows
       from notification n`,
  );
  expect(rows).toEqual([{ number: 1, rows: 240 }]);
  const texts = await db().query(
    `select from notification
      group by alarm_id having count(distinct (title, body, engine::text, data::text)) > 1`,
  );
  expect(texts.rowCount).toBe(0);
});

test('that alarms are over is told after that they began, to the same people', async () => {
  const owner = await givenStorm({ whenOver: true });
  await decide(silent, [...fire(owner), over(owner)]);
  expect(await stored()).toEqual({ written: 400, bundles: ['queued', 'queued', 'over', 'over'] });
  await unbundleNow();
  expect(await stored()).toEqual({ written: 480, bundles: [] });
  const { rows } = await db().query<{ types: string[]; count: number }>(
    `select types, count(*)::int as count
       from (select array_agg(type order by id) as types
               from notification group by alarm_id, contact_id) as each
      group by types`,
  );
  expect(rows).toEqual([{ types: ['opened', 'closed'], count: 240 }]);
  expect(await usedBy(owner, 'webhook')).toBe(480);
});

test('planned messages in bundles are dropped and put off like others', async () => {
  const owner = await givenStorm({ afterMs: 60 * minuteMs });
  await decide(silent, fire(owner));
  expect(await stored()).toEqual({ written: 200, bundles: ['planned', 'planned'] });
  const untilMs = world.nowTs + 120 * minuteMs;
  await db().transaction((tx) => putOffPlanned(tx, [owner.deviceId], untilMs));
  const early = await db().query(
    'select from notification where due_at < ms_to_timestamp($1::bigint)',
    [untilMs],
  );
  expect(early.rowCount).toBe(0);
  expect(await stored()).toEqual({ written: 240, bundles: [] });
  await decide(silent, [over(owner)]);
  expect(await stored()).toEqual({ written: 0, bundles: [] });
  expect(await usedBy(owner, 'webhook')).toBe(0);
  await decide(silent, [...fire(owner), over(owner)]);
  expect(await stored()).toEqual({ written: 0, bundles: [] });
  expect(await usedBy(owner, 'webhook')).toBe(0);
});

test('an announcement is not withdrawn before all that is bundled of it was tried', async () => {
  const owner = await givenStorm({ contacts: 19 });
  await decide(silent, fire(owner));
  const { rows } = await db().query<{ alarmId: number }>(
    `update notification set state = 'failed'
      where alarm_id in (select alarm_id from message_bundle)
     returning alarm_id as "alarmId"`,
  );
  const alarmId = rows[0]?.alarmId ?? 0;
  expect(rows.length).toBe(10);
  const end = () =>
    db().transaction((tx) => endAnnouncements(tx, [{ alarmId, announcement: 1 }], world.nowTs));
  const told = async () =>
    (await db().query<{ told: string }>('select told from alarm where id = $1', [alarmId])).rows;
  await end();
  expect(await told()).toEqual([{ told: 'queued' }]);
  await unbundleNow();
  await db().query(`update notification set state = 'failed' where alarm_id = $1`, [alarmId]);
  await end();
  expect(await told()).toEqual([{ told: 'withdrawn' }]);
});

const bundles = async () =>
  (
    await db().query<{ id: number; alarmId: number; error: string | null }>(
      'select id, alarm_id as "alarmId", error from message_bundle order by id',
    )
  ).rows;

test('texts that are cut within a character become messages', async () => {
  const { accountId, deviceId } = await givenStorm({ contacts: 0 });
  const message: DecidedMessage = {
    accountId,
    deviceId,
    kind: 'webhook',
    type: 'opened',
    contactId: null,
    recipient: 'http://127.0.0.1:1',
    title: 'cut \ud83d',
    body: 'cut',
    data: null,
    engine: null,
    alarmId: null,
    announcement: null,
    state: 'queued',
    dueMs: world.nowTs,
    urgency: 1,
    joins: false,
  };
  await db().transaction((tx) => bundleMessages(tx, [message], world.nowTs));
  await unbundleNow();
  expect(errors).toEqual([]);
  const { rows } = await db().query('select title from notification');
  expect(rows).toEqual([{ title: 'cut \ufffd' }]);
});

test('a bundle that cannot become messages is set aside, and the others do', async () => {
  const owner = await givenStorm();
  await decide(silent, fire(owner));
  const [bad] = await bundles();
  await db().query(`update message_bundle set body = '{"texts":["\\ud83d"]}' where id = $1`, [
    bad?.id,
  ]);
  // What says that an alarm is over can fail as well.
  await decide(silent, [over(owner)]);
  await unbundleNow();
  expect(errors).toHaveLength(1);
  expect(await bundles()).toMatchObject([{ id: bad?.id, error: expect.any(String) }]);
  expect((await stored())?.written).toBe(220);
  // It is neither tried again nor waited for, and stops nothing of its alarm.
  await unbundleNow();
  expect(errors).toHaveLength(1);
  await db().query(`update notification set state = 'failed' where alarm_id = $1`, [bad?.alarmId]);
  await db().transaction((tx) => putOffPlanned(tx, [owner.deviceId], world.nowTs + minuteMs));
});

test('making messages of bundles stops between two transactions', async () => {
  await decide(silent, fire(await givenStorm()));
  await unbundleNow({ signal: AbortSignal.abort() });
  expect(await stored()).toEqual({ written: 200, bundles: ['queued', 'queued'] });
});

test('an announcement does not wait for what is bundled of others, or planned', async () => {
  const owner = await givenStorm({ contacts: 19 });
  await decide(silent, fire(owner));
  const { rows } = await db().query<{ alarmId: number }>(
    `update notification set state = 'failed'
      where alarm_id in (select alarm_id from message_bundle)
     returning alarm_id as "alarmId"`,
  );
  const alarmId = rows[0]?.alarmId ?? 0;
  await db().query(
    `update message_bundle set holds = 'planned',
            body = replace(body::text, '"state":"queued"', '"state":"planned"')::json
      where alarm_id = $1`,
    [alarmId],
  );
  await db().transaction((tx) => endAnnouncements(tx, [{ alarmId, announcement: 1 }], world.nowTs));
  const told = await db().query('select told from alarm where id = $1', [alarmId]);
  expect(told.rows).toEqual([{ told: 'withdrawn' }]);
});

test('messages are given up together with the announcement of their alarm, and each alarm alone', async () => {
  const owner = await givenStorm({ contacts: 1 });
  await decide(silent, fire(owner));
  const ofAlarms = async () =>
    (
      await db().query<{ state: string; told: string; count: number }>(
        `select n.state, a.told, count(*)::int as count
           from notification n join alarm a on a.id = n.alarm_id group by 1, 2 order by 1, 2`,
      )
    ).rows;
  await db().query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$`,
  );
  await db().query(
    `create trigger refuse before update of told on alarm for each row
       when (old.event_name = 'event 3') execute function refuse()`,
  );
  const of = { beforeMs: Date.now() + 60_000, nowTs: world.nowTs };
  await expect(giveUpOld(db(), of)).rejects.toThrow('refused');
  expect(await ofAlarms()).toEqual([
    { state: 'failed', told: 'withdrawn', count: 11 },
    { state: 'queued', told: 'queued', count: 1 },
  ]);
  await db().query('drop trigger refuse on alarm');
  await giveUpOld(db(), of);
  expect(await ofAlarms()).toEqual([{ state: 'failed', told: 'withdrawn', count: 12 }]);
});
