import type { Sql } from '../db/sql.ts';
import type { AlarmNow, AlarmPort } from './alarm-port.ts';
import type { Turn } from './turn.ts';
import { countSegments, maxSegments } from './words/sms-text.ts';
import { describeTime } from './words/when.ts';
import type { Words } from './words/words.ts';
import { wordsOf } from './words/words-of.ts';

type GatherDeps = { db: Sql; alarms: AlarmPort; clock: () => number };
type Gathered = { title: string; alarmId: number | null };

/**
 * A message as it goes out: with what became of its alarm meanwhile, or, where its recipient had many lately,
 * with all others that wait for it.
 */
export async function gather({ db, alarms, clock }: GatherDeps, turn: Turn): Promise<Turn> {
  const isOfMany = turn.isGathering && turn.kind !== 'webhook' && turn.deviceUuid !== null;
  const others = isOfMany ? await gatherOthers(db, turn, clock()) : [];
  const all = [turn, ...others];
  const ids = all.flatMap(({ alarmId }) => alarmId ?? []);
  const states = ids.length === 0 ? [] : await alarms.listAlarmsNow(db, [...new Set(ids)]);
  const stateOf = new Map(states.map((state) => [state.alarmId, state]));
  if (others.length === 0) {
    const state = turn.alarmId === null ? undefined : stateOf.get(turn.alarmId);
    return state && turn.type !== 'closed' ? sayMeanwhile(turn, state, clock()) : turn;
  }
  const open = all.filter(
    ({ alarmId }) => alarmId === null || stateOf.get(alarmId)?.closedTs === null,
  );
  const text = textOf(open, all.length - open.length, wordsOf(turn.language));
  return { ...turn, ...(turn.kind === 'sms' ? { ...text, body: asSms(text) } : text) };
}

/** As many of its lines as fit. */
function asSms({ title, body }: Pick<Turn, 'title' | 'body'>): string {
  const lines = [title, ...body.split('\n')];
  while (lines.length > 1 && countSegments(lines.join('\n')) > maxSegments) lines.pop();
  return lines.join('\n');
}

/** Also those that an attempt before has gathered. */
async function gatherOthers(db: Sql, turn: Turn, nowMs: number): Promise<Gathered[]> {
  const { id, contactId, accountId, kind, recipient } = turn;
  const { rows } = await db.query<Gathered>(
    `with gathered as (
       update notification n
          set grouped_in = $1
        where n.state = 'queued' and n.id <> $1 and n.due_at <= ms_to_timestamp($6)
          and n.type not in ('confirm', 'test')
          and (n.grouped_in is null or n.grouped_in = $1)
          and case when $2::bigint is null
                   then n.contact_id is null and n.account_id = $3 and n.kind = $4 and n.recipient = $5
                   else n.contact_id = $2 end
          and (n.device_id is null or exists (
                select from device d where d.id = n.device_id and d.account_id is not null))
          and ($2::bigint is null or exists (
                select from contact c join device d on d.id = n.device_id
                 where c.id = $2 and (c.labels = '{}' or d.labels && c.labels)))
       returning n.id, n.title, n.alarm_id
     )
     select title, alarm_id as "alarmId" from gathered order by id desc`,
    [id, contactId, accountId, kind, recipient, nowMs],
  );
  return rows;
}

const maxNamed = 10;

function textOf(open: Gathered[], over: number, words: Words): Pick<Turn, 'title' | 'body'> {
  // Newest first; the message that leads is the oldest.
  const newest = [...open.slice(1), ...open.slice(0, 1)];
  const named = newest.slice(0, maxNamed).map(({ title }) => title);
  const more = newest.length > maxNamed ? ['…'] : [];
  const ended = over > 0 ? [words.gatheredOver(over)] : [];
  const title = open.length > 0 ? words.gathered(open.length) : words.gatheredOver(over);
  return { title, body: [...named, ...more, ...ended].join('\n') };
}

/** What was queued goes out all the same: it says what was done about its alarm since. */
function sayMeanwhile(turn: Turn, state: AlarmNow, nowMs: number): Turn {
  const words = wordsOf(turn.language);
  const when = (ts: number) => describeTime(ts, nowMs, turn.timeZone, words);
  const { closedTs, acknowledgedTs, snoozedUntilTs } = state;
  const said =
    closedTs !== null
      ? words.overSince(when(closedTs))
      : acknowledgedTs !== null
        ? words.acknowledgedAt(when(acknowledgedTs))
        : snoozedUntilTs !== null && snoozedUntilTs > nowMs
          ? words.snoozedUntil(when(snoozedUntilTs))
          : null;
  return said === null ? turn : { ...turn, body: `${turn.body}\n${said}` };
}
