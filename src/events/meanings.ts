import { LRUCache } from 'lru-cache';
import type { EngineCause, EventMeaning, NewEvent, RecordedEvent } from '../contract/event.ts';
import { cutText } from '../contract/purpose.ts';
import { deleteInBatches, documentsOf, jsonSequence, type Sql } from '../db/sql.ts';
import type { Clock } from '../lib/clock-readings.ts';

/*
 * What events are called, and what they require: their names and conditions in the profile. A row says it once for all
 * events of one cause (content of profiles, purpose, state, event), and stays when the content goes: profiles keep its
 * number. It is written with the first event of its cause, and goes a while after the last one. Of a profile whose
 * content is not known by a number it has the profile's.
 */

/** A meaning that is to be written, and when an event of it was recorded (ms). */
type NewMeaning = { key: string; accountId: number; of: Cause; body: string; ts: number };

type Cause = Omit<EngineCause, 'ts'>;

/** Remembers which meanings are in the database, so that only the first event of a day writes one. */
export type KnownMeanings = {
  /** What has to be written with these events, sorted: two transactions that write the same ones do not deadlock. */
  unwritten(events: readonly NewEvent[]): NewMeaning[];
  /** They are committed. */
  written(meanings: readonly NewMeaning[]): void;
  clear(): void;
};

const dayMs = 86_400_000;
const mostRemembered = 20_000;

/** A meaning that is not remembered is written again, which changes nothing. */
export function createKnownMeanings(clock: Clock): KnownMeanings {
  const writtenTs = new LRUCache<string, number>({ max: mostRemembered });
  return {
    unwritten(events) {
      const nowTs = clock();
      const found = new Map<string, NewMeaning>();
      for (const { accountId, event, meaning, contentId } of events) {
        if (!meaning) continue;
        const { pId, puId, stId, evId } = event.cause.engine;
        const of = {
          pId: contentId === undefined ? pId : `${ofContent}${contentId}`,
          puId,
          stId,
          evId,
        };
        const key = `${accountId} ${keyOf(of)}`;
        // One written later than now was written before the clock was set back.
        const age = nowTs - (writtenTs.get(key) ?? -Infinity);
        if ((age >= 0 && age < dayMs) || found.has(key)) continue;
        found.set(key, { key, accountId, of, body: toBody(meaning), ts: nowTs });
      }
      return [...found.values()].toSorted((one, other) => (one.key < other.key ? -1 : 1));
    },
    written(meanings) {
      for (const { key, ts } of meanings) writtenTs.set(key, ts);
    },
    clear: () => writtenTs.clear(),
  };
}

/** Begins `p_id` of a row for all profiles with a content, before its number. */
const ofContent = '#';

const keyOf = ({ pId, puId, stId, evId }: Cause) => `${pId}/${puId}/${stId}/${evId}`;

/** Longer names are cut, and more conditions left out: whoever records one event must not store megabytes. */
const mostOfName = 300;
const mostOfConditions = 4_000;

function toBody({ conditions, to, ...names }: EventMeaning): string {
  const cut = (given: object) =>
    Object.fromEntries(
      Object.entries(given).map(([name, text]) => [name, cutText(String(text), mostOfName)]),
    );
  const isShort = JSON.stringify(conditions).length <= mostOfConditions;
  return JSON.stringify({
    ...cut(names),
    ...(isShort && { conditions }),
    ...(to && { to: cut(to) }),
  });
}

/** Writes meanings that are new, and of the others that an event was recorded today. */
export async function keepMeanings(tx: Sql, meanings: readonly NewMeaning[]): Promise<void> {
  await tx.query({
    name: 'keep-meanings',
    text: `
      insert into event_meaning as m (account_id, p_id, pu_id, st_id, ev_id, body, recorded_at)
      select account_id, p_id, pu_id, st_id, ev_id, body::json, ms_to_timestamp(ts)
        from unnest($1::bigint[], $2::text[], $3::integer[], $4::integer[], $5::integer[], $6::bigint[],
                    ${documentsOf('$7')}) as g (account_id, p_id, pu_id, st_id, ev_id, ts, body)
          on conflict (account_id, p_id, pu_id, st_id, ev_id) do update
         set recorded_at = excluded.recorded_at
       where m.recorded_at < excluded.recorded_at - interval '12 hours'`,
    values: [
      meanings.map(({ accountId }) => accountId),
      meanings.map(({ of }) => of.pId),
      meanings.map(({ of }) => of.puId),
      meanings.map(({ of }) => of.stId),
      meanings.map(({ of }) => of.evId),
      meanings.map(({ ts }) => ts),
      jsonSequence(meanings.map(({ body }) => body)),
    ],
  });
}

/** Adds what is kept of their meanings to events of an account. */
export async function addMeanings(
  sql: Sql,
  accountId: number,
  rows: readonly { body: object; meaning?: EventMeaning }[],
): Promise<void> {
  const causes = new Map<string, EngineCause>();
  for (const { body } of rows) {
    const of = engineOf(body);
    if (of) causes.set(keyOf(of), of);
  }
  if (causes.size === 0) return;
  const found = await findMeanings(sql, accountId, [...causes.values()]);
  for (const row of rows) {
    const of = engineOf(row.body);
    const meaning = of && found.get(keyOf(of));
    if (meaning) row.meaning = meaning;
  }
}

/** A change of an alarm has no cause. */
const engineOf = (body: object): EngineCause | undefined =>
  (body as Partial<RecordedEvent>).cause?.engine;

/**
 * The meanings of causes, as SQL: `causes`, a table with the columns `p_id`, `pu_id`, `st_id` and `ev_id`, with `body`
 * for those that have one. `account`: as SQL.
 */
export const meaningsOf = (causes: string, account: string): string => `
  (select w.*, m.body
     from ${causes} w
     left join profile p
       on p.account_id = ${account} and p.id = case when w.p_id ~ '${uuidPattern}' then w.p_id::uuid end
     join event_meaning m
       on m.account_id = ${account}
      and m.p_id in (w.p_id, '${ofContent}' || coalesce(p.content_id, p.former_content_id))
      and m.pu_id = w.pu_id and m.st_id = w.st_id and m.ev_id = w.ev_id)`;

const uuidPattern = '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$';

async function findMeanings(
  sql: Sql,
  accountId: number,
  causes: readonly Cause[],
): Promise<Map<string, EventMeaning>> {
  const { rows } = await sql.query<Cause & { body: EventMeaning }>({
    name: 'find-meanings',
    text: `
      with causes as (
        select * from unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
          as w (p_id, pu_id, st_id, ev_id))
      select p_id as "pId", pu_id as "puId", st_id as "stId", ev_id as "evId", body
        from ${meaningsOf('causes', '$1')} as found`,
    values: [
      accountId,
      causes.map(({ pId }) => pId),
      causes.map(({ puId }) => puId),
      causes.map(({ stId }) => stId),
      causes.map(({ evId }) => evId),
    ],
  });
  return new Map(rows.map(({ body, ...of }) => [keyOf(of), body]));
}

/** An event is stored up to a day after its meaning was noted, and its chunk of a week goes as a whole. */
const longerMs = 14 * dayMs;

/** Deletes meanings of which no event is left. `beforeTs`: events before it are deleted, ms. Returns how many. */
export function forgetMeanings(db: Sql, beforeTs: number, signal?: AbortSignal): Promise<number> {
  const deleteSome = (limit: number) =>
    db.query(
      `delete from event_meaning
        where (account_id, p_id, pu_id, st_id, ev_id) in (
          select account_id, p_id, pu_id, st_id, ev_id from event_meaning
           where recorded_at < ms_to_timestamp($1) limit $2
             for update skip locked)`,
      [beforeTs - longerMs, limit],
    );
  return deleteInBatches(deleteSome, { signal });
}
