import type { CauseDetail } from '../contract/event.ts';
import { isSamePlace, lastOf, type Place } from '../contract/values.ts';
import type { Sql } from '../db/sql.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import type { Alarm } from './rules.ts';
import type { FindNewest, Newest } from './values.ts';

/*
 * Does the condition of an alarm that a person closed still hold? Ingest says so when it ends, but a version that does
 * not know these alarms, and evaluates beside this one or did before it, does not. So before one opens again, what is
 * stored of its device must not contradict it.
 */

/** The numbers of those of these alarms whose condition has ended, by what is stored. */
export async function listEnded(
  tx: Sql,
  findNewest: FindNewest,
  alarms: readonly Alarm[],
  nowTs: WallMs,
): Promise<ReadonlySet<number>> {
  if (alarms.length === 0) return new Set();
  const deviceIds = [...new Set(alarms.map(({ device }) => device.deviceId))];
  const standing = await listStanding(tx, deviceIds);
  const senses = alarms.flatMap(({ device: { deviceId }, sIds }) =>
    sIds.map((sId) => ({ deviceId, sId })),
  );
  const newest = await findNewest(tx, senses);
  const ended = alarms.filter((alarm) => {
    const { deviceId } = alarm.device;
    return hasEnded(alarm, standing.get(deviceId), newest.get(deviceId) ?? {}, nowTs);
  });
  return new Set(ended.map(({ alarmId }) => alarmId));
}

/** Where a device is, and its current profile; null if it has none. */
type Standing = { place: Place; pId: string | null };

async function listStanding(tx: Sql, deviceIds: readonly number[]): Promise<Map<number, Standing>> {
  const { rows } = await tx.query<{ id: number; puId: number; stId: number; pId: string | null }>({
    name: 'alarms-standing-of-devices',
    text: `
      select s.device_id as id, s.pu_id as "puId", s.st_id as "stId", p.profile_id::text as "pId"
        from device_state s
        left join device_profile p on p.device_id = s.device_id and p.state = 'current'
       where s.device_id = any($1::bigint[])`,
    values: [deviceIds],
  });
  return new Map(rows.map(({ id, pId, ...place }) => [id, { place, pId }]));
}

function hasEnded(
  alarm: Alarm,
  standing: Standing | undefined,
  newest: Newest,
  nowTs: WallMs,
): boolean {
  if (!standing) return false;
  const { of, movedTo, isGlobal, isReported, event } = alarm;
  const { place, pId } = standing;
  if (pId !== alarm.pId) return true;
  if (movedTo) return !isSamePlace(movedTo, place);
  if (isReported) return false;
  if (of.puId !== place.puId || (!isGlobal && of.stId !== place.stId)) return true;
  // Another group of causes may have held since.
  if (event.why?.some(({ group }) => group !== undefined)) return false;
  // Lists and polygons are not compared here, nor what a statistic, a difference or a rounded value is compared with.
  return (event.why ?? []).some((detail, index) => {
    const isRounded = alarm.conditions[index]?.threshold['decimalAcc'] !== undefined;
    return !isRounded && disagrees(detail, newest, alarm, nowTs);
  });
}

/** A time further ahead than this was not evaluated yet. */
const mostAheadMs = 10_000;

/** Whether the newest value of a cause's sense ends the episode. */
function disagrees(
  { sId, thresholds, negate, over, relative, of, needed, silentMs }: CauseDetail,
  values: Newest,
  { event }: Alarm,
  nowTs: WallMs,
): boolean {
  const newest = Object.hasOwn(values, sId) ? values[sId] : undefined;
  if (!newest || newest.ts > nowTs + mostAheadMs) return false;
  // Something was heard since.
  if (silentMs !== undefined)
    return event.cause.senses.some((told) => told.sId === sId && newest.ts > told.ts);
  const { isGt, isLt, ...others } = thresholds;
  const isLimit = typeof isGt === 'number' || typeof isLt === 'number';
  const isPlain = isLimit && Object.keys(others).length === 0;
  // With n of m, one value that disagrees ends nothing.
  if (!isPlain || over || relative || of > needed) return false;
  const val = lastOf(newest);
  if (typeof val !== 'number') return false;
  const isWithin =
    val > (typeof isGt === 'number' ? isGt : -Infinity) &&
    val < (typeof isLt === 'number' ? isLt : Infinity);
  return isWithin === negate;
}
