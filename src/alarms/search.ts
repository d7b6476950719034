import type { Severity } from '../contract/actions.ts';
import type { AlarmState } from '../contract/alarm.ts';
import type { Sql } from '../db/sql.ts';
import { inState } from './rows.ts';

// Which alarms of an account are meant, in which order, how many there are, and what they have in common. It looks at
// all open alarms, and at the newest fifty thousand where closed ones count too.

export type AlarmSearch = {
  accountId: number;
  /** Only devices that have one of these labels; null: any device. */
  within: readonly string[] | null;
  /** `standing`: open or acknowledged. */
  state?: AlarmState | 'standing' | undefined;
  deviceUuid?: string | undefined;
  /** Only devices that have all of these. */
  labels?: readonly string[] | undefined;
  /** A part of the device's or the event's name, in any case. */
  search?: string | undefined;
  /** As groups name it: the event's name, or `puId/stId/evId` if it has none. */
  event?: string | undefined;
  severity?: Severity | undefined;
  /** A message: only the alarms that it, or the summary that it was sent as, was about. */
  notification?: number | undefined;
};

type AlarmOrder = 'newest' | 'oldest' | 'severity' | 'name';

/** Where a page ends: the last alarm's place in the order, and its number. */
type Place = { key: string | number; id: number };

const mostClosed = 50_000;

const named = `case when a.event_name <> '' then a.event_name
                    else concat_ws('/', a.pu_id, a.st_id, a.ev_id) end`;
const rank = `case a.severity when 'info' then 0 when 'warning' then 1 else 2 end`;

/** The matching alarms as `m`; `$1` to `$8` come from `valuesOf`; `$1` is the account. */
export function matching({ state }: AlarmSearch): string {
  const ofState = state === 'open' || state === 'acknowledged' ? `and ${inState[state]}` : '';
  const open = `select * from alarm a where a.account_id = $1 and a.closed_at is null ${ofState}`;
  const closed = `
    (select * from alarm a where a.account_id = $1 and ${inState.closed} order by a.id desc limit ${mostClosed})`;
  const any = `${open} union all ${closed}`;
  const source = { standing: open, open, acknowledged: open, closed, any }[state ?? 'any'];
  return `
    matching as (
      select a.id, coalesce(a.began_at, a.since_at) as began_at, a.device_uuid, ${named} as event,
             ${rank} as rank, d.labels,
             lower(coalesce(d.name, '')) as name
        from (${source}) a
        join device d on d.id = a.device_id and d.account_id = a.account_id
       where ($2::text[] is null or d.labels && $2)
         and ($3::uuid is null or d.uuid = $3)
         and ($4::text[] is null or d.labels @> $4)
         and ($5::text is null
              or position(lower($5) in lower(coalesce(d.name, ''))) > 0
              or position(lower($5) in lower(${named})) > 0)
         and ($6::text is null or ${named} = $6)
         and ($7::text is null or a.severity = $7)
         and ($8::bigint is null
              or a.id in (select n.alarm_id from notification n
                           where n.account_id = $1 and (n.id = $8 or n.grouped_in = $8))))`;
}

export const valuesOf = ({
  accountId,
  within,
  deviceUuid = null,
  labels = null,
  search = null,
  event = null,
  severity = null,
  notification = null,
}: Partial<Record<keyof AlarmSearch, unknown>>): unknown[] => [
  accountId,
  within,
  deviceUuid,
  labels,
  search,
  event,
  severity,
  notification,
];

/** What each order goes by, and what comes after a place (`$9`, `$10`) in it. */
const orders: Record<AlarmOrder, { key: string; type: string; by: string; after: string }> = {
  newest: { key: 'm.id', type: 'bigint', by: 'm.id desc', after: 'm.id < $10' },
  oldest: {
    key: 'm.began_at',
    type: 'bigint',
    by: 'm.began_at, m.id',
    after: '(m.began_at, m.id) > (ms_to_timestamp($9), $10)',
  },
  severity: {
    key: 'm.rank',
    type: 'integer',
    by: 'm.rank desc, m.id desc',
    after: '(m.rank, m.id) < ($9, $10)',
  },
  name: {
    key: 'm.name',
    type: 'text',
    by: 'm.name, m.id desc',
    after: '(m.name > $9 or (m.name = $9 and m.id < $10))',
  },
};

/** The numbers of matching alarms, at most `limit`, each with its place. */
export async function searchAlarms(
  sql: Sql,
  search: AlarmSearch,
  { order, after, limit }: { order: AlarmOrder; after: Place | undefined; limit: number },
): Promise<Place[]> {
  const { key, type, by, after: isAfter } = orders[order];
  const { rows } = await sql.query<Place>(
    `with ${matching(search)}
     select m.id, ${key} as key
       from matching m
      where ($9::${type} is null and $10::bigint is null) or ${isAfter}
      order by ${by}
      limit $11`,
    [...valuesOf(search), after?.key ?? null, after?.id ?? null, limit],
  );
  return rows;
}

/** The matching alarms with their devices, newest first, at most `limit`. */
export async function selectAlarms(
  sql: Sql,
  search: AlarmSearch,
  limit: number,
): Promise<{ alarmId: number; uuid: string }[]> {
  const { rows } = await sql.query<{ alarmId: number; uuid: string }>(
    `with ${matching(search)}
     select m.id as "alarmId", m.device_uuid as uuid from matching m order by m.id desc limit $9`,
    [...valuesOf(search), limit],
  );
  return rows;
}

/** How many match. */
export async function countAlarms(sql: Sql, search: AlarmSearch): Promise<number> {
  const { rows } = await sql.query<{ total: number }>(
    `with ${matching(search)} select count(*) as total from matching`,
    valuesOf(search),
  );
  return rows[0]?.total ?? 0;
}

/** Alarms of one event, or of devices with one label (empty: of devices without any). `beganTs`: the oldest's. */
export type AlarmGroup = { name: string; total: number; severity: Severity; beganTs: number };

const mostGroups = 200;
const severities = ['info', 'warning', 'critical'] as const;

/** The matching alarms by event or by label, the worst and largest groups first. */
export async function groupAlarms(
  sql: Sql,
  search: AlarmSearch,
  by: 'event' | 'label',
): Promise<AlarmGroup[]> {
  const labels = `
    cross join lateral unnest(case when m.labels = '{}' then array[''] else m.labels end) as l (label)`;
  const { rows } = await sql.query<Omit<AlarmGroup, 'severity'> & { rank: number }>(
    `with ${matching(search)}
     select ${by === 'event' ? 'm.event' : 'l.label'} as name, count(*) as total, max(m.rank) as rank,
            min(m.began_at) as "beganTs"
       from matching m ${by === 'event' ? '' : labels}
      group by 1
      order by max(m.rank) desc, count(*) desc, 1
      limit ${mostGroups}`,
    valuesOf(search),
  );
  return rows.map(({ rank: most, ...group }) => ({
    ...group,
    severity: severities[most] ?? 'warning',
  }));
}
