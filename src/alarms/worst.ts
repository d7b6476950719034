import type { WallMs } from '../lib/clock-readings.ts';
import { lastOf } from '../contract/values.ts';
import type { Sql } from '../db/sql.ts';
import { type AlarmSearch, matching, valuesOf } from './search.ts';
import type { FindExtremes, FindNewest } from './values.ts';

// Which alarms went furthest beyond their limits. The extreme of an open alarm is read when somebody asks, so the order
// is made here and not by the database.

/** An alarm's place in the order: how far it went, in parts of the limit, and its number. */
type Place = { key: number; id: number };

/** How many alarms are looked at, the newest; how many of their values in all, and of one; how many alarms at once. */
const mostLookedAt = 5_000;
const mostValues = 1_000_000;
const mostOfAlarm = 20_000;
const atOnce = 100;

/** What has no limit to go beyond comes last. */
const noLimit = -1;

/**
 * An alarm with the first limit that it is about (`limitOf`), and nothing else of what it keeps, which may be long.
 * `kept`: its extreme if it is closed. `fired`: the worst of the values that opened it and of its newest firing.
 */
type Row = {
  id: number;
  deviceId: number;
  sId: string | null;
  limit: number;
  isMax: boolean;
  fromTs: number;
  toTs: number | null;
  isOpen: boolean;
  kept: number | null;
  fired: number | null;
};

const isNumber = (path: string) =>
  `coalesce(json_typeof(c.condition #> '{${path}}') = 'number', false)`;

/** As SQL: what is sorted by of the alarms `a`. */
const compared = `
  select a.id, a.device_id as "deviceId", l.s_id as "sId", l.bound as limit, l.is_max as "isMax",
         coalesce(a.began_at, a.since_at) as "fromTs", coalesce(a.over_at, a.closed_at) as "toTs",
         a.closed_at is null as "isOpen",
         case when a.extreme #>> '{0,sId}' = l.s_id then (a.extreme #>> '{0,val}')::float8 end as kept,
         (select case when l.is_max then max(v.val) else min(v.val) end
            from (select (f.value ->> 'val')::float8 as val
                    from (select value from json_array_elements(a.fired_with)
                           union all
                          select value from json_array_elements(coalesce(a.event #> '{cause,senses}', '[]'))) as f
                   where f.value ->> 'sId' = l.s_id) as v) as fired
    from matching m
    join alarm a on a.id = m.id
    left join lateral (
      select c.condition ->> 'sId' as s_id,
             (coalesce(c.condition #>> '{thresholds,isGt}', c.condition #>> '{thresholds,isLt}'))::float8 as bound,
             ${isNumber('thresholds,isGt')} <> coalesce(c.condition #>> '{threshold,negate}' = 'true', false) as is_max
        from json_array_elements(a.conditions) with ordinality as c (condition, place)
       where ${isNumber('thresholds,isGt')} <> ${isNumber('thresholds,isLt')}
         and c.condition #>> '{threshold,relative}' is distinct from 'true'
         and c.condition #> '{threshold,over}' is null
       order by c.place
       limit 1) as l on true
   order by m.id desc`;

/**
 * The matching alarms by how far their worst value went beyond the limit, in parts of the limit (one from -1 to 1
 * counts as 1): 10 above a limit of 8 is 0.25, as is -13.5 above one of -18. At most `limit`, after that place.
 */
export async function listWorst(
  sql: Sql,
  { findExtremes, findNewest }: { findExtremes: FindExtremes; findNewest: FindNewest },
  search: AlarmSearch,
  { after, limit, nowTs }: { after: Place | undefined; limit: number; nowTs: WallMs },
): Promise<Place[]> {
  const { rows } = await sql.query<Row>(`with ${matching(search)} ${compared} limit $9`, [
    ...valuesOf(search),
    mostLookedAt,
  ]);
  const open = rows.filter(({ isOpen, sId }) => isOpen && sId !== null);
  const most = Math.min(mostOfAlarm, Math.floor(mostValues / Math.max(1, open.length)));
  const read = new Map<number, number>();
  for (let from = 0; from < open.length; from += atOnce) {
    const some = open.slice(from, from + atOnce);
    const asked = some.map(({ deviceId, sId, fromTs, toTs, isMax }) => {
      return { deviceId, sId: sId ?? '', fromTs, toTs: toTs ?? nowTs, isMax };
    });
    const found = await findExtremes(sql, asked, most);
    // Of more values than are looked at, the newest one is known.
    const newest = await findNewest(sql, asked);
    for (const [place, { id, deviceId, sId, isMax, fired }] of some.entries()) {
      const last = lastOf(newest.get(deviceId)?.[sId ?? '']);
      const known = [fired, last].filter((each) => typeof each === 'number');
      const val = found[place]?.val ?? (isMax ? Math.max(...known) : Math.min(...known));
      if (Number.isFinite(val)) read.set(id, val);
    }
  }
  const isAfter = ({ key, id }: Place) =>
    after === undefined || key < after.key || (key === after.key && id < after.id);
  return rows
    .map((row) => ({ id: row.id, key: beyond(row, read.get(row.id) ?? row.kept ?? row.fired) }))
    .filter(isAfter)
    .toSorted((one, other) => other.key - one.key || other.id - one.id)
    .slice(0, limit);
}

function beyond({ sId, limit, isMax }: Row, val: number | null): number {
  if (sId === null || val === null) return noLimit;
  const far = isMax ? val - limit : limit - val;
  return Math.max(0, far) / Math.max(1, Math.abs(limit));
}
