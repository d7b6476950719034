import { type AlarmCondition, type AlarmValue, limitOf } from '../contract/alarm.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import type { Sql } from '../db/sql.ts';
import { type AlarmSearch, matching, valuesOf } from './search.ts';
import { type FindExtremes, readExtremes, type Timed } from './values.ts';

// Which alarms went furthest beyond their limits. The extreme of an open alarm is read when somebody asks, so the order
// is made here and not by the database.

/** An alarm's place in the order: how far it went, in parts of the limit, and its number. */
type Place = { key: number; id: number };

/** How many alarms are looked at, the newest. */
const mostLookedAt = 5_000;

/** What has no limit to go beyond comes last. */
const noLimit = -1;

/** `firedWith`: the values that opened the alarm; `senses`: those of its newest firing. */
type Row = Omit<Timed, 'device'> & {
  id: number;
  deviceId: number;
  extreme: AlarmValue[];
  firedWith: AlarmValue[];
  senses: AlarmValue[] | null;
};

/**
 * The matching alarms by how far their worst value went beyond the limit, in parts of the limit (one from -1 to 1
 * counts as 1): 10 above a limit of 8 is 0.25, as is -13.5 above one of -18. At most `limit`, after that place.
 */
export async function listWorst(
  sql: Sql,
  find: FindExtremes,
  search: AlarmSearch,
  { after, limit, nowTs }: { after: Place | undefined; limit: number; nowTs: WallMs },
): Promise<Place[]> {
  const { rows } = await sql.query<Row>(
    `with ${matching(search)}
     select a.id, a.device_id as "deviceId", a.conditions, a.extreme, a.began_at as "beganTs",
            a.since_at as "sinceTs", a.over_at as "overTs", a.closed_at as "closedTs",
            a.fired_with as "firedWith", a.event #> '{cause,senses}' as senses
       from matching m
       join alarm a on a.id = m.id
      order by m.id desc
      limit $9`,
    [...valuesOf(search), mostLookedAt],
  );
  const unread = rows.filter(({ closedTs }) => closedTs === null);
  const asked = unread.map(({ id, deviceId, ...rest }) => ({
    ...rest,
    alarmId: id,
    device: { deviceId, uuid: '', accountId: 0 },
  }));
  const read = await readExtremes(sql, find, asked, nowTs);
  const isAfter = ({ key, id }: Place) =>
    after === undefined || key < after.key || (key === after.key && id < after.id);
  return rows
    .map(({ id, conditions, extreme, firedWith, senses }) => {
      const value = read.get(id);
      const kept = value ? [value] : extreme;
      return {
        id,
        key: beyond(conditions, kept.length > 0 ? kept : [...firedWith, ...(senses ?? [])]),
      };
    })
    .filter(isAfter)
    .toSorted((one, other) => other.key - one.key || other.id - one.id)
    .slice(0, limit);
}

function beyond(conditions: readonly AlarmCondition[], values: readonly AlarmValue[]): number {
  const of = limitOf(conditions);
  const own = values.filter(({ sId }) => sId === of?.sId).map(({ val }) => val);
  if (!of || own.length === 0) return noLimit;
  const far = of.isMax ? Math.max(...own) - of.limit : of.limit - Math.min(...own);
  return Math.max(0, far) / Math.max(1, Math.abs(of.limit));
}
