import type { ChannelName } from '../contract/actions.ts';
import { documentsOf, jsonSequence, type Sql } from '../db/sql.ts';
import { slicesOf } from '../lib/text.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import type { MessageType } from './channels/channel.ts';
import { dueChannel } from './recipients.ts';

/*
 * Messages that a transaction has no room for. A storm of alarms makes thousands, and whoever sends measurements would
 * wait until all are written. So a transaction writes the first ones, and of the others a bundle for each alarm, with
 * all that was decided: to whom, with which text, counted against which day. The obligation to send is in the commit.
 * Processes that deliver make bundles messages within moments, the oldest first; so do those who change what is
 * planned. An alarm with a bundle that is over has another one, which says so.
 */

/** Messages that a transaction writes; the others are bundled. */
export const mostWritten = 200;

/** Messages of one bundle, and bundles of one statement, which so makes a few hundred messages. */
const mostInBundle = 25;
const bundlesAtOnce = 20;

/** A message as it was decided: the columns of `notification`. Times in ms. */
export type DecidedMessage = {
  accountId: number;
  deviceId: number | null;
  kind: ChannelName;
  type: MessageType;
  contactId: number | null;
  recipient: string;
  title: string;
  body: string;
  data: string | null;
  engine: string | null;
  alarmId: number | null;
  announcement: number | null;
  /** 0 critical, 1 warning, 2 info. */
  urgency: number;
  /** It is sent with another, and counts with that. */
  joins: boolean;
  state: 'queued' | 'planned';
  dueMs: number;
};

/** Bundles messages that are counted already. */
export async function bundleMessages(
  tx: Sql,
  messages: readonly DecidedMessage[],
  nowTs: WallMs,
): Promise<void> {
  const ofAlarm = Map.groupBy(
    messages,
    ({ accountId, deviceId, alarmId }) => `${accountId} ${deviceId} ${alarmId}`,
  );
  const bundles = [...ofAlarm.values()]
    .flatMap((all) => slicesOf(all, mostInBundle))
    .map((of) => ({ of, first: of[0] as DecidedMessage }));
  await writeBundles(
    tx,
    bundles.map(({ of, first: { accountId, deviceId, alarmId } }) => ({
      accountId,
      deviceId,
      alarmId,
      holds: of.some(({ state }) => state === 'planned') ? 'planned' : 'queued',
      body: bodyOf(of, nowTs),
    })),
  );
}

/** `holds`: messages, some of which are planned, or none; or that the alarm is over. */
type Bundle = Pick<DecidedMessage, 'accountId' | 'deviceId' | 'alarmId'> & {
  holds: 'planned' | 'queued' | 'over';
  body: string;
};

export async function writeBundles(tx: Sql, bundles: readonly Bundle[]): Promise<void> {
  if (bundles.length === 0) return;
  await tx.query({
    name: 'outbox-write-bundles',
    text: `
      insert into message_bundle (account_id, device_id, alarm_id, holds, body)
      select account_id, device_id, alarm_id, holds, body::json
        from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[], ${documentsOf('$5')})
          as b (account_id, device_id, alarm_id, holds, body)`,
    values: [
      bundles.map(({ accountId }) => accountId),
      bundles.map(({ deviceId }) => deviceId),
      bundles.map(({ alarmId }) => alarmId),
      bundles.map(({ holds }) => holds),
      jsonSequence(bundles.map(({ body }) => body)),
    ],
  });
}

/** Texts are the same for many recipients: each is there once, and messages have its number. */
function bodyOf(messages: readonly DecidedMessage[], createdTs: WallMs): string {
  const texts = new Map<string, number>();
  const numberOf = (text: string | null): number | null => {
    if (text === null) return null;
    const number = texts.get(text) ?? texts.size;
    texts.set(text, number);
    return number;
  };
  const compact = messages.map(
    ({
      title,
      body,
      data,
      engine,
      kind,
      type,
      contactId,
      recipient,
      announcement,
      urgency,
      joins,
      state,
      dueMs,
    }) => ({
      kind,
      type,
      contactId,
      recipient,
      announcement,
      urgency,
      joins,
      state,
      dueMs,
      title: numberOf(title),
      body: numberOf(body),
      data: numberOf(data),
      engine: numberOf(engine),
    }),
  );
  // Texts of devices and purposes may be cut within a character, which JSON keeps and PostgreSQL does not read again.
  const wellFormed = (_: string, value: unknown) =>
    typeof value === 'string' ? value.toWellFormed() : value;
  return JSON.stringify({ createdTs, texts: [...texts.keys()], messages: compact }, wellFormed);
}

/** As SQL: it is to become messages. One that could not has an error. */
export const isWaiting = `holds <> 'over' and error is null`;

/** Makes bundles messages, in the order of their numbers. `which`: a condition. */
const makeMessages = (which: string) => `
  with locked as (
    select id from message_bundle where ${which} and ${isWaiting} order by id for update
  ), gone as (
    delete from message_bundle b using locked l where b.id = l.id returning b.*
  ), made as (
    insert into notification
      (account_id, device_id, kind, recipient, title, body, engine, state, contact_id, data, alarm_id,
       announcement, type, urgency, counted_on, due_at, created_at, changed_at)
    select g.account_id, g.device_id, m.kind, m.recipient, t.texts ->> m.title, t.texts ->> m.body,
           (t.texts ->> m.engine)::json, m.state, m."contactId", (t.texts ->> m.data)::json, g.alarm_id,
           m.announcement, m.type, coalesce(m.urgency, 1),
           case when m.joins is not true then (t.created at time zone 'UTC')::date end, ms_to_timestamp(m."dueMs"),
           t.created, t.created
      from gone g
     cross join lateral (
       select g.body -> 'texts' as texts, ms_to_timestamp((g.body ->> 'createdTs')::bigint) as created offset 0) t
     cross join lateral rows from (
       json_to_recordset(g.body -> 'messages') as (
         kind text, type text, "contactId" bigint, recipient text, title integer, body integer, data integer,
         engine integer, announcement integer, urgency smallint, joins boolean, state text, "dueMs" bigint))
       with ordinality
       as m (kind, type, "contactId", recipient, title, body, data, engine, announcement, urgency, joins, state,
             "dueMs", place)
     order by g.id, m.place
    returning id
  ), told as (
    select pg_notify('${dueChannel}', '') from made limit 1
  )
  select (select count(*) from gone)::integer as bundles, (select count(*) from told) as told`;

/** Makes planned messages of alarms or devices that are bundled messages. The caller has locked the devices. */
export async function unbundlePlanned(
  tx: Sql,
  {
    alarmIds = [],
    deviceIds = [],
  }: { alarmIds?: readonly number[]; deviceIds?: readonly number[] },
): Promise<void> {
  await tx.query({
    name: 'outbox-unbundle-planned',
    text: makeMessages(
      `holds = 'planned' and (alarm_id = any($1::bigint[]) or device_id = any($2::bigint[]))`,
    ),
    values: [alarmIds, deviceIds],
  });
}

/** Makes everything messages that is bundled about an alarm. The caller has locked its device. */
export async function unbundleAlarm(tx: Sql, alarmId: number): Promise<void> {
  await tx.query(makeMessages('alarm_id = $1'), [alarmId]);
}

/** The oldest bundles that are to become messages, or those that say that an alarm without others is over. */
export async function listOldest(sql: Sql, holds: 'messages' | 'over'): Promise<number[]> {
  const which =
    holds === 'messages'
      ? isWaiting
      : `holds = 'over' and error is null
         and not exists (select from message_bundle b where b.alarm_id = o.alarm_id and b.${isWaiting})`;
  const { rows } = await sql.query<{ id: number }>({
    name: `outbox-oldest-${holds}`,
    text: `select id from message_bundle o where ${which} order by id limit ${bundlesAtOnce}`,
    values: [],
  });
  return rows.map(({ id }) => id);
}

/** Makes these bundles messages. */
export async function unbundleThese(tx: Sql, ids: readonly number[]): Promise<void> {
  await tx.query({
    name: 'outbox-unbundle-these',
    text: makeMessages('id = any($1::bigint[])'),
    values: [ids],
  });
}

/** Sets a bundle aside that cannot become messages, so that others do. It stays for the operator. */
export async function setBundleAside(sql: Sql, id: number, error: string): Promise<void> {
  await sql.query('update message_bundle set error = $2 where id = $1', [id, error]);
}

/** Those of these alarms of which messages are bundled. */
export async function listBundled(tx: Sql, alarmIds: readonly number[]): Promise<BundledAlarm[]> {
  const { rows } = await tx.query<BundledAlarm>({
    name: 'outbox-list-bundled',
    text: `
      select distinct on (alarm_id) alarm_id as "alarmId", account_id as "accountId",
             device_id as "deviceId"
        from message_bundle
       where alarm_id = any($1::bigint[]) and ${isWaiting}`,
    values: [alarmIds],
  });
  return rows;
}

type BundledAlarm = { alarmId: number; accountId: number; deviceId: number };

/** Takes these bundles, which say that alarms are over; not those that another process takes. */
export async function takeOver<T>(tx: Sql, ids: readonly number[]): Promise<T[]> {
  const { rows } = await tx.query<{ body: T }>({
    name: 'outbox-take-over',
    text: `
      with locked as (
        select id from message_bundle where id = any($1::bigint[]) order by id for update skip locked)
      delete from message_bundle b using locked l where b.id = l.id returning b.body`,
    values: [ids],
  });
  return rows.map(({ body }) => body);
}
