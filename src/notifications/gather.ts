import type { Severity } from '../contract/actions.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';
import type { Counted, Delivery } from './channels/channel.ts';
import { channels } from './channels/channels.ts';
import { type QuotasOf, takeFromDailyLimits } from './daily-limits.ts';
import { lockCountsOf, readUsed, writeCounts } from './counts.ts';
import type { Reason } from './reasons.ts';
import { describeTime, lastToday, wordsOf } from './text.ts';
import { isCutOff } from './waiting.ts';
import type { Words } from './words.ts';

/*
 * The summary of all messages that wait for a person (`waiting.ts` says when they do). It is sent in place of the first
 * of them, and counts as one message for the limits of its day.
 */

/** A message of a summary, with its alarm as it is now. Times in ms; null: it is about no alarm, or that is open. */
type Gathered = {
  id: number;
  title: string;
  alarmId: number | null;
  sinceTs: number;
  closedTs: number | null;
  severity: Severity;
  deviceId: number | null;
  labels: string[];
  isCounted: boolean;
};

type GatherDeps = { db: Database; quotasOf: QuotasOf; clock: Clock };

/**
 * The summary of a claimed message and all others that wait for its recipient; null if there are no others, or each is
 * sent by itself. It also marks the others as grouped with it.
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
  if (all.length < 2) return null;
  const words = wordsOf(delivery.language);
  const when = (ts: number) => describeTime(ts, nowTs, delivery.timeZone, words);
  const { title, body } = summaryOf(all, when, words);
  const isLast = await isUsedUp(db, delivery, { counted, quotasOf, nowTs });
  const text = {
    title,
    body: isLast ? `${body}\n${lastToday({ ...delivery, nowTs }, words)}` : body,
  };
  const page = pageOf(all);
  return { ...delivery, ...text, page, ...(shorten ? { body: shorten(text) } : {}) };
}

/**
 * Marks the messages that are sent with this one, and returns all with this one. An attempt that was cut off may have
 * succeeded: it is repeated with the same messages.
 */
async function groupWith(db: Sql, delivery: Delivery, nowTs: WallMs): Promise<Gathered[]> {
  const { id, contactId, accountId, kind, recipient, isGathering, isRepeated } = delivery;
  const isTheirs = (row: string) => `
    case when $2::bigint is null
         then ${row}.contact_id is null and ${row}.account_id = $3 and ${row}.kind = $4 and ${row}.recipient = $5
         else ${row}.contact_id = $2 end`;
  const { rows } = await db.query<Gathered>(
    `with grouped as (
       update notification n
          set grouped_in = $1
        where n.state = 'queued' and n.id <> $1 and n.due_at <= ms_to_timestamp($6)
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
     select e.id, e.title, e.alarm_id as "alarmId", coalesce(a.since_at, e.created_at) as "sinceTs",
            a.closed_at as "closedTs", (array['critical', 'warning', 'info'])[e.urgency + 1] as severity,
            e.device_id as "deviceId", coalesce(d.labels, '{}') as labels,
            e.counted_on is not null as "isCounted"
       from every e
       left join alarm a on a.id = e.alarm_id
       left join device d on d.id = e.device_id
      order by e.urgency, e.id desc`,
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

const maxNamed = 10;
const maxLabels = 5;
const severities: Severity[] = ['critical', 'warning', 'info'];

function summaryOf(
  all: readonly Gathered[],
  when: (ts: number) => string,
  words: Words,
): { title: string; body: string } {
  const alarms = distinct(all);
  const open = alarms.filter(({ closedTs }) => closedTs === null);
  const over = alarms.length - open.length;
  const ended = over > 0 ? [words.gatheredOver(over)] : [];
  if (open.length === 0) return { title: words.gatheredOver(over), body: '' };
  const devices = new Set(open.map(({ deviceId }) => deviceId)).size;
  const since = when(Math.min(...open.map(({ sinceTs }) => sinceTs)));
  const bySeverity = severities.flatMap((severity) => {
    const count = open.filter((one) => one.severity === severity).length;
    return count > 0 ? [words.severity[severity](count)] : [];
  });
  const more = open.length > maxNamed ? [words.andMore(open.length - maxNamed)] : [];
  return {
    title: words.gathered(open.length, devices, since),
    body: [
      ...(bySeverity.length > 1 || open[0]?.severity === 'critical' ? [bySeverity.join(', ')] : []),
      ...sayLabels(open, words),
      ...open.slice(0, maxNamed).map(({ title }) => title),
      ...more,
      ...ended,
    ].join('\n'),
  };
}

/** Several messages may be about one alarm. */
function distinct(all: readonly Gathered[]): Gathered[] {
  const seen = new Set<number>();
  return all.filter(({ alarmId }) => {
    if (alarmId === null) return true;
    const isNew = !seen.has(alarmId);
    seen.add(alarmId);
    return isNew;
  });
}

/** How many alarms there are at devices with each label, most first; nothing if no device has one. */
function sayLabels(open: readonly Gathered[], words: Words): string[] {
  const counts = new Map<string, number>();
  for (const { labels } of open)
    for (const label of labels.length > 0 ? labels : [''])
      counts.set(label, (counts.get(label) ?? 0) + 1);
  if (counts.size === 0 || (counts.size === 1 && counts.has(''))) return [];
  const named = [...counts].toSorted(([, a], [, b]) => b - a);
  const said = named
    .slice(0, maxLabels)
    .map(([label, count]) => words.atLabel(label || words.noLabel, count));
  return [said.join(', ') + (named.length > maxLabels ? ', …' : '')];
}

/** The list of alarms, the worst first; of one label, if all of their devices have that. */
function pageOf(all: readonly Gathered[]): string {
  const [first, ...others] = all.map(({ labels }) => labels);
  const common = first?.filter((label) => others.every((labels) => labels.includes(label))) ?? [];
  const query = new URLSearchParams({ sort: 'severity' });
  if (common[0] !== undefined) query.set('label', common[0]);
  return `alarms?${query.toString()}`;
}
