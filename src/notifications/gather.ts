import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';
import type { Counted, Delivery } from './channels/channel.ts';
import { channels } from './channels/channels.ts';
import { type QuotasOf, takeFromDailyLimits } from './daily-limits.ts';
import { lockCountsOf, readUsed, writeCounts } from './counts.ts';
import type { Reason } from './reasons.ts';
import { listDeviceWords } from './recipients.ts';
import { type Gathered, namedOver, pagesOf, summaryOf } from './summary.ts';
import { lastToday, wordsOf } from './text.ts';
import { isCutOff } from './waiting.ts';

/*
 * Which messages a summary includes: all that wait for a person (`waiting.ts` says when they do). It is sent in place
 * of the first of them, and counts as one message for the limits of its day. `summary.ts` says what is in it.
 */

type GatherDeps = { db: Database; quotasOf: QuotasOf; clock: Clock };

/**
 * The summary of a claimed message and all others that wait for its recipient; null if there are no others, or each is
 * sent by itself. It also marks the others as grouped with it. A lone message that an alarm is over is a summary, too,
 * if its recipient was told of the alarm by one.
 */
export async function gather(
  { db, quotasOf, clock }: GatherDeps,
  delivery: Delivery,
): Promise<Delivery | { heldBack: Reason } | null> {
  const { shorten, isForPrograms } = channels[delivery.kind];
  if (isForPrograms || delivery.deviceUuid === null) return null;
  const nowTs = clock();
  const all = await groupWith(db, delivery, nowTs);
  const counted = all.filter(({ isCounted }) => isCounted).length;
  if (!delivery.isCounted && counted === 0) {
    const full = await count(db, delivery, { quotasOf, nowTs });
    if (full) return { heldBack: full };
  }
  const [first, ...others] = all;
  if (!first || (others.length === 0 && !first.isByCount)) return null;
  const words = wordsOf(delivery.language);
  const said = summaryOf(all, {
    left: await countLeft(db, delivery, all),
    devices: await wordsOfNamed(db, all),
    timeZone: delivery.timeZone,
    nowTs,
    words,
  });
  const isLast = await isUsedUp(db, delivery, { counted, quotasOf, nowTs });
  const lines = [...said.lines, ...(isLast ? [lastToday({ ...delivery, nowTs }, words)] : [])];
  const text = { title: said.title, body: lines.join('\n') };
  const pages = pagesOf(all, delivery.id);
  return { ...delivery, ...text, pages, ...(shorten ? { body: shorten(text) } : {}) };
}

/** How the senses of alarms that the summary names are written. */
function wordsOfNamed(db: Sql, all: readonly Gathered[]) {
  const named = namedOver(all);
  const deviceIds = named.flatMap(({ deviceId }) => deviceId ?? []);
  const sIds = named.flatMap(({ extreme }) => extreme.map(({ sId }) => sId));
  return listDeviceWords(db, deviceIds, sIds);
}

/** How many alarms of which the recipient was told are not over; 0 if the summary says of none that it is over. */
async function countLeft(
  db: Sql,
  { contactId, accountId, kind, recipient }: Delivery,
  all: readonly Gathered[],
): Promise<number> {
  if (all.every(({ closedTs }) => closedTs === null)) return 0;
  const { rows } = await db.query<{ left: number }>(
    `select count(*) as left
       from alarm a
       join device d on d.id = a.device_id and d.account_id = a.account_id
      where a.account_id = $1 and a.closed_at is null
        and exists (select from notification n
                     where n.alarm_id = a.id and n.state in ('sent', 'logged') and ${isTheirs('n')})`,
    [accountId, contactId, accountId, kind, recipient],
  );
  return rows[0]?.left ?? 0;
}

/** The message is to this recipient; `$2` to `$5`: contact, account, channel and address. */
const isTheirs = (row: string) => `
  case when $2::bigint is null
       then ${row}.contact_id is null and ${row}.account_id = $3 and ${row}.kind = $4 and ${row}.recipient = $5
       else ${row}.contact_id = $2 end`;

/**
 * Marks the messages that are sent with this one, and returns all with this one. An attempt that was cut off may have
 * succeeded: it is repeated with the same messages. What says that an alarm is over waits for others (`ended.ts`).
 */
async function groupWith(db: Sql, delivery: Delivery, nowTs: WallMs): Promise<Gathered[]> {
  const { id, contactId, accountId, kind, recipient, isGathering, isRepeated } = delivery;
  // Only an end that has waited itself takes the others along: one that is told at once would cut their wait short.
  const { rows } = await db.query<Gathered>(
    `with grouped as (
       update notification n
          set grouped_in = $1
        where n.state = 'queued' and n.id <> $1
          and (n.due_at <= ms_to_timestamp($6) or (n.type = 'closed' and n.attempts = 0 and exists (
                 select from notification l where l.id = $1 and l.type = 'closed' and l.due_at > l.created_at)))
          and n.type not in ('confirm', 'test')
          and case when $8 then n.grouped_in = $1
                   else n.grouped_in is null and not ${isCutOff('n')} end
          and ${isTheirs('n')}
          and (n.device_id is null or exists (
                select from device d where d.id = n.device_id and d.account_id is not null))
          and ($2::bigint is null or exists (
                select from contact c join device d on d.id = n.device_id
                 where c.id = $2 and (c.labels = '{}' or d.labels && c.labels)))
          and ($7 or $8 or exists (
                select from notification j
                 where j.state = 'queued' and j.counted_on is null and ${isTheirs('j')}))
       returning n.*
     ), every as (
       select * from grouped
        union all
       select * from notification where id = $1
     )
     select coalesce(told.title, e.title) as title, e.body, e.alarm_id as "alarmId",
            coalesce(a.since_at, e.created_at) as "sinceTs",
            case when a.id is null and e.type = 'closed' then e.created_at else a.closed_at end as "closedTs",
            a.began_at as "beganTs", a.over_at as "overTs", a.filled_at as "filledTs",
            coalesce(a.conditions, '[]') as conditions, coalesce(a.extreme, '[]') as extreme,
            coalesce(a.severity, (array['critical', 'warning', 'info'])[e.urgency + 1]) as severity,
            e.device_id as "deviceId", coalesce(d.labels, '{}') as labels,
            e.counted_on is not null as "isCounted", coalesce(told.by_count, false) as "isByCount"
       from every e
       left join alarm a on a.id = e.alarm_id
       left join device d on d.id = e.device_id
       left join lateral (
         select o.title,
                o.grouped_in is not null or exists (select from notification g where g.grouped_in = o.id) as by_count
           from notification o
          where e.type = 'closed' and o.alarm_id = e.alarm_id and o.type <> 'closed' and ${isTheirs('o')}
          order by o.id limit 1) as told on true
      order by array_position(array['critical', 'warning', 'info'],
                              coalesce(a.severity, (array['critical', 'warning', 'info'])[e.urgency + 1])),
               e.id desc`,
    [id, contactId, accountId, kind, recipient, nowTs, isGathering, isRepeated],
  );
  return rows;
}

const countedOf = ({ accountId, kind: channel, recipient }: Delivery): Counted => ({
  accountId,
  channel,
  recipient,
});

type Counting = { quotasOf: QuotasOf; nowTs: WallMs };

/** Counts a message that was to be sent with another and now leads; returns the limit that is reached, if one is. */
function count(
  db: Database,
  delivery: Delivery,
  { quotasOf, nowTs }: Counting,
): Promise<Reason | null> {
  return db.transaction(async (tx) => {
    const mark = (isCounted: boolean) =>
      tx.query(
        `update notification
            set counted_on = case when $2 then (ms_to_timestamp($3) at time zone 'UTC')::date end
          where id = $1`,
        [delivery.id, isCounted, nowTs],
      );
    await mark(true);
    const counts = await lockCountsOf(tx, [countedOf(delivery)], { quotasOf, nowTs });
    const taken = takeFromDailyLimits(countedOf(delivery), counts.used, quotasOf);
    if (!('full' in taken)) await writeCounts(tx, counts.listCounted());
    else await mark(false);
    return 'full' in taken ? taken.full : null;
  });
}

/** Whether nothing is left of the day's limits once the summary is sent. `counted`: its messages that count now. */
async function isUsedUp(
  db: Sql,
  delivery: Delivery,
  { counted, quotasOf, nowTs }: Counting & { counted: number },
): Promise<boolean> {
  const left = await readUsed(db, countedOf(delivery), { quotasOf, nowTs });
  return left.some(({ used, limit }) => used - Math.max(0, counted - 1) >= limit);
}
