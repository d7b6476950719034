import { setTimeout as delay } from 'node:timers/promises';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { Purpose } from '../../src/contract/purpose.ts';
import { type Database, openDatabase } from '../../src/db/database.ts';
import type { Sql } from '../../src/db/sql.ts';
import { compileProfile, type Profile } from '../../src/engine/compile.ts';
import { type History, played, recorded } from '../play/recorded.ts';
import { schema } from '../support/template.ts';

/** How many devices with a profile were played, and those for which that gives something else than was recorded. */
type PlayedAgain = { playedAgain: number; playedOtherwise: string[] };

/**
 * Plays each device of the database again from what is kept of it. Left out is where a caveat says that it cannot be
 * exact: arrivals began anew because the service's clock was set back, or a profile that it once had is gone. Sense
 * events may be missing from what was recorded, no more of an account than its quota has left out.
 */
export async function playAgain(databaseUrl: string, nowTs: () => number): Promise<PlayedAgain> {
  const db = openDatabase({
    connectionString: databaseUrl,
    schema,
    maxConnections: 1,
    connectTimeoutMs: 20_000,
    statementTimeoutMs: 20_000,
    onIdleError: () => undefined,
  });
  try {
    const { rows } = await db.query<{ id: string; purposes: Purpose[] }>(
      `select p.id, coalesce(c.purposes, f.purposes) as purposes
         from profile p
         left join profile_content c on c.id = p.content_id
         left join former_profile_content f on f.id = p.former_content_id
        where num_nonnulls(c.id, f.id) > 0`,
    );
    const profiles = new Map<string, Profile>(
      rows.map(({ id, purposes }) => [id, compileProfile(id, purposes)]),
    );
    const devices = await db.query<DeviceIdentity>(
      `select id as "deviceId", uuid, account_id as "accountId" from device d
        where account_id is not null
          and exists (select from device_profile dp where dp.device_id = d.id)`,
    );
    const result: PlayedAgain = { playedAgain: 0, playedOtherwise: [] };
    const missing = new Map<number, { events: number; of: string[] }>();
    for (const device of devices.rows) {
      const why = await differs(db, device, profiles, nowTs);
      if (why === leftOut) continue;
      result.playedAgain += 1;
      if (typeof why === 'string') result.playedOtherwise.push(`device ${device.uuid}: ${why}`);
      if (why === null || typeof why === 'string') continue;
      const { events, of } = missing.get(device.accountId) ?? { events: 0, of: [] };
      of.push(`device ${device.uuid}: ${why.missing} events are missing`);
      missing.set(device.accountId, { events: events + why.missing, of });
    }
    for (const [accountId, { events, of }] of missing)
      if (!(await areLeftOut(db, accountId, events))) result.playedOtherwise.push(...of);
    return result;
  } finally {
    await db.close();
  }
}

const leftOut = 'left out';

/** An alarm may be due to close while this looks, so it looks a second time. */
async function differs(
  db: Database,
  device: DeviceIdentity,
  profiles: ReadonlyMap<string, Profile>,
  nowTs: () => number,
): Promise<string | { missing: number } | null> {
  let why: string | { missing: number } | null = null;
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const profileOf = (pId: string) => profiles.get(pId);
    const closedTs = nowTs();
    // One snapshot: devices go on.
    const [result, expected] = await db.transaction(async (tx) => {
      await tx.query('set transaction isolation level repeatable read');
      const range = await findArrivals(tx, device);
      return [
        await played(tx, { device, profileOf, ...range, closedTs }),
        await recorded(tx, device),
      ] as const;
    });
    const { caveats, ...history } = result;
    if (caveats.some((one) => one === 'clock-break' || one === 'unknown-profile')) return leftOut;
    if (caveats.length === 0 && JSON.stringify(history) === JSON.stringify(expected)) return null;
    const missing = caveats.length === 0 ? countMissing(history, expected) : null;
    if (missing !== null) {
      why = { missing };
      continue;
    }
    const first = expected.events.findIndex(
      (event, n) => JSON.stringify(event) !== JSON.stringify(history.events[n]),
    );
    why = JSON.stringify({
      caveats,
      events: [expected.events.length, history.events.length],
      first: first < 0 ? null : [expected.events[first], history.events[first]],
      alarms: [
        expected.alarms.filter((one) => !history.alarms.includes(one)),
        history.alarms.filter((one) => !expected.alarms.includes(one)),
      ],
    });
  }
  return why;
}

/** How many sense events were not recorded, if that is all that differs; else null. */
function countMissing(history: History, expected: History): number | null {
  if (JSON.stringify(history.alarms) !== JSON.stringify(expected.alarms)) return null;
  let found = 0;
  for (const event of history.events) {
    const text = JSON.stringify(event);
    if (text === JSON.stringify(expected.events[found])) found += 1;
    else if ((event as { type: string }).type !== 'sense') return null;
  }
  return found === expected.events.length ? history.events.length - found : null;
}

/** Whether the account's quota has left out so many events. They are counted a moment after they were. */
async function areLeftOut(db: Sql, accountId: number, events: number): Promise<boolean> {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const { rows } = await db.query<{ leftOut: number }>(
      `select coalesce(sum(events_left_out), 0)::bigint as "leftOut" from account_activity where account_id = $1`,
      [accountId],
    );
    if ((rows[0]?.leftOut ?? 0) >= events) return true;
    await delay(1_000);
  }
  return false;
}

/** From its first to its last arrival, ms. */
async function findArrivals(
  db: Sql,
  { deviceId }: DeviceIdentity,
): Promise<{ fromTs: number; untilTs: number }> {
  const { rows } = await db.query<{ fromTs: number; untilTs: number }>(
    `select coalesce(min(arrived), 0) as "fromTs", coalesce(max(arrived) + 1, 0) as "untilTs"
       from (
         select arrived from device_input where device_id = $1
         union all
         select m.arrived from measurement m join series s on s.id = m.series_id
          where s.device_id = $1) as one`,
    [deviceId],
  );
  return rows[0] ?? { fromTs: 0, untilTs: 0 };
}
