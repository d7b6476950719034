import { type AlarmValue, limitOf } from '../contract/alarm.ts';
import { lastOf, type Position } from '../contract/values.ts';
import type { Sql } from '../db/sql.ts';
import { type Alarm, type Silence, silenceOf } from './rules.ts';
import type { WallMs } from '../lib/clock-readings.ts';

type Value = number | Position;

/** The newest values of senses. Values that share a timestamp are in order; `last`: the last one, if not in `vals`. */
export type Newest = Readonly<Record<string, { ts: number; vals: Value[]; last?: Value }>>;

/** Reads the newest values of these senses, by device. */
export type FindNewest = (
  sql: Sql,
  wanted: { deviceId: number; sId: string }[],
) => Promise<ReadonlyMap<number, Newest>>;

/** The newest value of each of an alarm's senses. */
export function newestOf(
  { device, sIds, event }: Pick<Alarm, 'device' | 'sIds' | 'event'>,
  newest: ReadonlyMap<number, Newest>,
): AlarmValue[] {
  const own = newest.get(device.deviceId) ?? {};
  return sIds.flatMap((sId) => {
    const value = Object.hasOwn(own, sId) ? own[sId] : undefined;
    const val = lastOf(value);
    if (!value || val === undefined) return [];
    if (typeof val === 'number') return [{ sId, val, ts: value.ts }];
    // The position only, not whether it meets the condition: for that, show the value that the event compared.
    const told = event.cause.senses.find((sense) => sense.sId === sId);
    return [{ sId, val: told?.val ?? 0, ts: value.ts, lat: val.lat, long: val.long }];
  });
}

// How far beyond its limit was it? The extreme of an open alarm is read when somebody asks. That of a closed one is
// kept: the alarm's timer reads it after the alarm closed, and again after a late measurement fell inside.

/** A sense of a device between two times (ms, inclusive), and whether its greatest or its least value is asked for. */
type AskedExtreme = {
  deviceId: number;
  sId: string;
  fromTs: number;
  toTs: number;
  isMax: boolean;
};

/** Reads these; null for those that have no value, or more than `most`. */
export type FindExtremes = (
  sql: Sql,
  asked: readonly AskedExtreme[],
  most: number,
) => Promise<(AlarmValue | null)[]>;

type Timed = Pick<Alarm, 'device' | 'conditions' | 'beganTs' | 'sinceTs' | 'overTs' | 'closedTs'>;

/** What to read for an alarm; null if none of its causes compares a value with one limit. */
export function askedOf(alarm: Timed, nowTs: WallMs): AskedExtreme | null {
  const { conditions, beganTs, sinceTs, overTs, closedTs } = alarm;
  const limit = limitOf(conditions);
  if (!limit) return null;
  const { sId, isMax } = limit;
  const toTs = overTs ?? closedTs ?? nowTs;
  return { deviceId: alarm.device.deviceId, sId, fromTs: beganTs ?? sinceTs, toTs, isMax };
}

/** How many values of an open alarm are looked at, as many as come in a week at one in half a minute; and of a page. */
const mostAsked = 20_000;
const mostOfPage = 500_000;

/** The extremes of open alarms, by their numbers. Alarms that have none are missing. */
export async function readExtremes(
  sql: Sql,
  find: FindExtremes,
  alarms: readonly (Timed & Pick<Alarm, 'alarmId'>)[],
  nowTs: WallMs,
): Promise<Map<number, AlarmValue>> {
  const asked = alarms.flatMap((alarm) => {
    const one = askedOf(alarm, nowTs);
    return one ? [{ ...one, alarmId: alarm.alarmId }] : [];
  });
  const most = Math.min(mostAsked, Math.floor(mostOfPage / Math.max(1, asked.length)));
  const found = await find(sql, asked, most);
  return new Map(
    asked.flatMap(({ alarmId }, place) => {
      const value = found[place];
      return value ? [[alarmId, value] as const] : [];
    }),
  );
}

/** How many values of a closed alarm are looked at, at most, and of how many alarms in one step of the timer. */
const mostKept = 500_000;
const alarmsAtOnce = 20;

type Due = Timed & Pick<Alarm, 'firedWith' | 'filledTs'> & { alarmId: number; dueTs: string };

/** How long an alarm waits whose extreme could not be read, ms. */
const retryMs = 3_600_000;

/** The time of the first measurement within a silence, ms; null if there is none. */
export type FindWithin = (sql: Sql, deviceId: number, silence: Silence) => Promise<number | null>;

/**
 * Writes extremes of closed alarms that are due, and what filled their silences. One that cannot be read waits, so that
 * others have theirs.
 */
export async function keepExtremes(
  sql: Sql,
  { findExtremes: find, findWithin }: { findExtremes: FindExtremes; findWithin: FindWithin },
  nowTs: WallMs,
  onError: (error: unknown) => void,
): Promise<void> {
  for (const alarm of await listDue(sql, nowTs)) {
    const asked = askedOf(alarm, nowTs);
    const silence = silenceOf(alarm);
    let found: AlarmValue | null = null;
    let filledTs = alarm.filledTs;
    try {
      [found = null] = asked ? await find(sql, [asked], mostKept) : [];
      if (silence) filledTs = await findWithin(sql, alarm.device.deviceId, silence);
    } catch (error) {
      onError(error);
      await sql.query('update alarm set extreme_due_at = ms_to_timestamp($2) where id = $1', [
        alarm.alarmId,
        nowTs + retryMs,
      ]);
      continue;
    }
    await sql.query({
      name: 'alarms-keep-extreme',
      // Another late measurement may have come meanwhile: then it is due again.
      text: `
        update alarm
           set extreme = $2::json, filled_at = ms_to_timestamp($4),
               extreme_due_at = case when extreme_due_at::text = $3 then null else extreme_due_at end
         where id = $1`,
      values: [alarm.alarmId, JSON.stringify(found ? [found] : []), alarm.dueTs, filledTs],
    });
  }
}

async function listDue(sql: Sql, nowTs: WallMs): Promise<Due[]> {
  const { rows } = await sql.query<Omit<Due, 'device'> & { deviceId: number }>({
    name: 'alarms-extremes-due',
    text: `
      select id as "alarmId", device_id as "deviceId", conditions, began_at as "beganTs",
             since_at as "sinceTs", over_at as "overTs", closed_at as "closedTs",
             fired_with as "firedWith", filled_at as "filledTs",
             extreme_due_at::text as "dueTs"
        from alarm
       where extreme_due_at <= ms_to_timestamp($1)
       order by extreme_due_at
       limit $2`,
    values: [nowTs, alarmsAtOnce],
  });
  return rows.map(({ deviceId, ...rest }) => ({
    ...rest,
    device: { deviceId, uuid: '', accountId: 0 },
  }));
}

/**
 * How many alarms of a device that ended since its late measurement are looked at for each sense, the newest first, and
 * how many of them look for their extremes again. Whoever sends late values waits with others for the transaction.
 */
const mostEnded = 200;
const mostLate = 100;

/**
 * Measurements of a device that came late, or were imported: closed alarms into whose time they fall look for their
 * extremes again.
 */
export async function noteLate(
  tx: Sql,
  late: readonly { deviceId: number; sId: string; fromTs: number; toTs: number }[],
): Promise<void> {
  if (late.length === 0) return;
  await tx.query({
    name: 'alarms-note-late',
    text: `
      with inside as (
        select ended.id
          from unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[])
            as l (device_id, s_id, from_ts, to_ts)
         cross join lateral (
           select * from alarm
            where device_id = l.device_id and closed_at is not null
              and coalesce(over_at, closed_at) >= ms_to_timestamp(l.from_ts)
            order by coalesce(over_at, closed_at) desc
            limit ${mostEnded}) ended
         where coalesce(ended.began_at, ended.since_at) <= ms_to_timestamp(l.to_ts)
           and ended.s_ids @> array[l.s_id]
         limit ${mostLate}),
      locked as (
        select id from alarm where id in (select id from inside) order by id for no key update)
      update alarm a set extreme_due_at = clock_timestamp() from locked l where a.id = l.id`,
    values: [
      late.map(({ deviceId }) => deviceId),
      late.map(({ sId }) => sId),
      late.map(({ fromTs }) => fromTs),
      late.map(({ toTs }) => toTs),
    ],
  });
}
