import { awaitingAnswer, neededStates } from '../contract/profile.ts';
import { presenceOf } from '../contract/values.ts';
import { type Sql, textList } from '../db/sql.ts';
import { refuseLabelList } from './select.ts';
import { stream } from '../http/answer.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { linkNext } from '../http/schema.ts';
import { yieldToEventLoop } from '../lib/event-loop.ts';
import type { Exports } from '../quotas/exports.ts';
import { createFairRunner } from '../quotas/quotas.ts';
import {
  type ConnectorAddress,
  DeviceList,
  exactMembers,
  FleetQuery,
  intermittentAmong,
  type SearchedMember,
  searchedMembers,
} from './schema.ts';
import { deriveToken } from './tokens.ts';
import type { WallMs } from '../lib/clock-readings.ts';

type ListDevicesDeps = {
  db: Sql;
  listConnectors: () => readonly ConnectorAddress[];
  /** The keys that device tokens are derived from, newest first. */
  keys: readonly Buffer[];
  /** The quota `exports`: how many lists may be read and sent at once. */
  exports: Pick<Exports, 'run'>;
  findByValues: FindByValues;
};

/** Devices on a page if the request sets no limit. */
const defaultLimit = 100;

/** All devices, as in specification section 4.3; or, with parameters, the matching ones in pages. */
export function listRoute({
  db,
  keys,
  exports,
  listConnectors,
  findByValues,
}: ListDevicesDeps): Route {
  const runFairly = createFairRunner(1);
  return defineRoute({
    name: 'listDevices',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices',
    summary: 'Get user devices',
    description:
      'Without parameters: all devices in one answer. With any of the parameters below: the ' +
      `matching devices, page by page, ${defaultLimit} per page unless \`limit\` says ` +
      'otherwise.',
    tag: 'Devices',
    auth: 'account',
    query: FleetQuery,
    response: DeviceList,
    secrets: 'sessions',
    errors: [],
    responseHeaders: { Link: 'The next page, if there is one.' },
    answerBytes: 4_194_304,
    handler: async ({ account, query, request }) => {
      const { accountId } = account;
      const labels = labelsOf(account);
      // A key that may read lists must not get the devices' credentials.
      const tokenKeys = account.key ? null : keys;
      if (Object.values(query).every((value) => value === undefined)) {
        const pages = await exports.run(
          accountId,
          request.signal,
          listDevices(db, accountId, labels),
        );
        return stream('application/json', writeDeviceList(tokenKeys, pages, request.now()));
      }
      for (const label of query.label ?? [])
        await refuseLabelList(db, accountId, { label, labels });
      const connectors = listConnectors();
      const intermittent = intermittentAmong(connectors);
      const limit = query.limit ?? defaultLimit;
      const find = async () => {
        const ids = await findByValues(db, { accountId, labels, ...query });
        const filter = { ...query, ids, accountId, labels, nowTs: request.now(), intermittent };
        return Promise.all([
          findDevices(db, filter, limit),
          query.counts ? countDevices(db, filter) : undefined,
        ]);
      };
      const [found, counts] = await (isCostly(query) ? runFairly(accountId, find) : find());
      const page = found.slice(0, limit);
      const last = page.at(-1);
      if (last && found.length > limit) linkNext(request, [last.sortKey, last.id]);
      const devices: DeviceList['devices'] = [];
      const byId = connectorsById(connectors);
      for (const [n, row] of page.entries()) {
        if (n % devicesAtOnce === 0) await yieldToEventLoop();
        devices.push(toFound(tokenKeys, row, byId));
      }
      return { devices, counts, timestamp: request.now() };
    },
  });
}

/** Whether something of each device is looked up for each page: an account gets one such page at a time. */
const isCostly = ({ value, beyond, purpose, sort }: FleetQuery) =>
  value !== undefined || beyond !== undefined || purpose !== undefined || sort?.key === 'value';

type ConnectorsById = ReadonlyMap<number, Pick<ConnectorAddress, 'kind' | 'protocol'>>;

export const connectorsById = (connectors: readonly ConnectorAddress[]): ConnectorsById =>
  new Map(connectors.map((connector) => [connector.id, connector]));

/** A device as an entry of a page. */
export function toFound(
  keys: readonly Buffer[] | null,
  row: FoundDevice,
  connectors: ConnectorsById,
): DeviceList['devices'][number] {
  const protocol = connectors.get(row.connectorId)?.protocol;
  // If the connector is no longer configured, nothing better is known.
  const transport = connectors.get(row.heardAt)?.kind ?? 'mqtt';
  const { openAlarms, alarmSinceTs, alarmName, stateName, refusedTs, mutedUntilTs, mutedReason } =
    row;
  const limitsFrom =
    typeof row.limitsOf === 'string'
      ? { label: row.limitsOf }
      : row.limitsOf === null
        ? null
        : ('own' as const);
  return {
    ...toListed(keys, row),
    presence: presenceOf(row.connected ?? false, transport !== 'mqtt'),
    transport,
    ...searchedOf(row),
    limitsFrom,
    openAlarms,
    ...(protocol === undefined ? {} : { protocol }),
    ...(alarmSinceTs === null ? {} : { alarmSinceTs }),
    ...(alarmName ? { alarmName } : {}),
    ...(stateName ? { stateName } : {}),
    ...(refusedTs === null ? {} : { refusedTs }),
    ...(mutedUntilTs === null ? {} : { mutedUntilTs }),
    ...(mutedReason === null ? {} : { mutedReason }),
  };
}

type ListedDevice = {
  uuid: string;
  token_version: number;
  name: string;
  labels: string[];
  pu_id: number;
  st_id: number;
  state_at: number;
  connected: boolean | null;
  last_seen_at: number | null;
};

type Row = ListedDevice & {
  id: number;
  /** To the microsecond. */
  created: string;
  /** How many devices there were to read for this page. */
  found: number;
};

/** Limits of what is in memory at once, and read without yielding: devices, and bytes of their names and labels. */
const pageDevices = 2_000;
const pageNameBytes = 1_048_576;

/**
 * Pages of an account's devices, in the order of registration; none if it has no devices. `labels`: only devices that
 * have one of these; null: all.
 */
async function* listDevices(
  db: Sql,
  accountId: number,
  labels: readonly string[] | null = null,
): AsyncGenerator<ListedDevice[]> {
  let after = { created: '-infinity', id: 0 };
  for (;;) {
    const rows = await readPage(db, { accountId, labels }, after);
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    if (rows.length === last.found && last.found < pageDevices) return;
    after = last;
  }
}

/** Reads devices until the page's bytes are used up, at least one; the names of the others are not read. */
async function readPage(
  db: Sql,
  { accountId, labels }: { accountId: number; labels: readonly string[] | null },
  after: Pick<Row, 'created' | 'id'>,
): Promise<Row[]> {
  const { rows } = await db.query<Row>(
    `
      select p.id, p.created_at::text as created, p.found, p.uuid, p.token_version, p.name, p.labels,
             s.pu_id, s.st_id, s.state_at, c.connected, c.last_seen_at
        from (
          select d.*, count(*) over () as found,
                 sum(octet_length(d.name) + pg_column_size(d.labels))
                     over (order by d.created_at, d.id)
                   - octet_length(d.name) - pg_column_size(d.labels) as before
            from (
              select id, created_at, uuid, token_version, name, labels
                from device
               where account_id = $1 and (created_at, id) > ($2::timestamptz, $3)
                 and ($4::text[] is null or labels && $4)
               order by created_at, id
               limit ${pageDevices}) d) p
        join device_state s on s.device_id = p.id
        left join presence c on c.device_id = p.id
       where p.before < ${pageNameBytes}
       order by p.created_at, p.id`,
    [accountId, after.created, after.id, labels],
  );
  return rows;
}

/** Devices whose tokens are derived before yielding: about 3 ms of work. */
const devicesAtOnce = 500;

/**
 * The answer of Get user devices, specification section 4.3, written as it is made. `keys`: tokens are derived from
 * them; null: tokens stay empty.
 */
export async function* writeDeviceList(
  keys: readonly Buffer[] | null,
  pages: AsyncIterable<ListedDevice[]>,
  timestamp: DeviceList['timestamp'],
): AsyncGenerator<string> {
  yield '{"devices":[';
  let separator = '';
  for await (const rows of pages) {
    await yieldToEventLoop();
    for (let from = 0; from < rows.length; from += devicesAtOnce) {
      const devices = rows.slice(from, from + devicesAtOnce).map((row) => toListed(keys, row));
      yield separator + JSON.stringify(devices).slice(1, -1);
      separator = ',';
      await yieldToEventLoop();
    }
  }
  yield `],"timestamp":${timestamp}}`;
}

/** A device as an entry of the list. */
function toListed(
  keys: readonly Buffer[] | null,
  row: ListedDevice,
): DeviceList['devices'][number] {
  return {
    uuid: row.uuid,
    token: keys ? deriveToken(keys, row.uuid, row.token_version) : '',
    state: { puId: row.pu_id, stId: row.st_id, ts: row.state_at },
    name: row.name,
    labels: row.labels,
    connected: row.connected ?? false,
    lastSeenTs: row.last_seen_at,
  };
}

function searchedOf(row: FoundDevice): Record<SearchedMember, string> {
  const names = Object.keys(searchedMembers) as SearchedMember[];
  return Object.fromEntries(names.map((name) => [name, row[name]])) as Record<
    SearchedMember,
    string
  >;
}

type FoundDevice = ListedDevice &
  Record<SearchedMember, string> & {
    id: number;
    /** The connector that it was assigned. */
    connectorId: number;
    /** The connector where it is connected or was heard last; before that, the assigned one. */
    heardAt: number;
    sortKey: string;
    openAlarms: number;
    /** Null if it has no open alarm. */
    alarmSinceTs: number | null;
    /** The event of the worst of them; null or empty if there is none, or it has no name. */
    alarmName: string | null;
    /** Null unless its newest login was refused. */
    refusedTs: number | null;
    /** Of the state in its current profile; null or empty if there is only one, or it has no name. */
    stateName: string | null;
    /** The label whose limits it has, or waits for; true: its own; null: it has none. */
    limitsOf: string | true | null;
    /** Null if it is not muted. */
    mutedUntilTs: number | null;
    /** Null if no reason was given, or if it is not muted. */
    mutedReason: string | null;
  };

/** As text, keys sort as their values do, except names: those are compared without case. */
const sortKeys = {
  name: { sql: 'lower(d.name)', type: 'text' },
  lastSeenTs: { sql: `coalesce(c.last_seen_at, '-infinity')`, type: 'timestamptz' },
  registeredTs: { sql: 'd.created_at', type: 'timestamptz' },
};

/** A page of the devices that match all filters, and one more if there is another page. */
export async function findDevices(
  sql: Sql,
  filter: FleetFilter,
  limit: number,
): Promise<FoundDevice[]> {
  const { cursor } = filter;
  const { key, isDescending } = filter.sort ?? { key: 'registeredTs', isDescending: false };
  const [direction, beyond] = isDescending ? ['desc', '<'] : ['asc', '>'];
  const own = valuesOf(filter);
  const [afterKey, afterId, most, sorted, values] = [1, 2, 3, 4, 5].map(
    (n) => `$${own.length + n}`,
  );
  // Devices without a value come last.
  const last = `'${isDescending ? '-' : ''}Infinity'`;
  const { sql: sortKey, type } =
    key === 'value' ? { sql: `coalesce(v.val, ${last})`, type: 'float8' } : sortKeys[key];
  const { rows } = await sql.query<FoundDevice>(
    `
      with page as materialized (
        select d.id, d.uuid, d.token_version, d.name, d.labels, s.pu_id, s.st_id, s.state_at,
               c.connected, c.last_seen_at, c.connector_id as heard_at, ${sortKey} as sort_key, (${sortKey})::text as "sortKey"
          from device d
          join device_state s on s.device_id = d.id
          left join presence c on c.device_id = d.id ${joinMutes('$8')}
          left join unnest(${sorted}::bigint[], ${values}::float8[]) as v (device_id, val) on v.device_id = d.id
         where ${matching(filter)}
           and (${afterKey}::text is null
                or (${sortKey}, d.id) ${beyond} (${afterKey}::${type}, ${afterId}::bigint))
         order by ${sortKey} ${direction}, d.id ${direction}
         limit ${most}
      ), refused as (
        select r.device_id, max(r.last_at) as "refusedTs"
          from refused_login r
         where r.account_id = $1 and r.is_open and r.device_id = any(array(select id from page))
         group by r.device_id
      ), running as materialized (
        select w.device_id, p.content_id
          from device_profile w
          join profile p on p.id = w.profile_id
         where w.device_id = any(array(select id from page)) and w.state = 'current'
      ), newest as (
        select distinct on (w.device_id) w.device_id, w.label, c.bytes
          from device_profile w
          join profile p on p.id = w.profile_id
          join profile_content c on c.id = p.content_id
         where w.device_id = any(array(select id from page)) and w.state in ${textList(neededStates)}
         order by w.device_id, w.state = 'current'
      ), named as (
        select c.id as content_id, s."puId" as pu_id, s."stId" as st_id, s.name
          from profile_content c
         cross join lateral json_to_recordset(c.state_names) as s ("puId" integer, "stId" integer, name text)
         where c.id in (select content_id from running)
      )
      select page.*, ${searchedColumns}, named.name as "stateName",
             case when newest.bytes > 2 then coalesce(to_json(newest.label), 'true'::json) end as "limitsOf",
             d.connector_id as "connectorId",
             coalesce(page.heard_at, d.connector_id) as "heardAt",
             alarms.*, refused."refusedTs", m.until_at as "mutedUntilTs", m.reason as "mutedReason"
        from page
        join device d on d.id = page.id
        left join refused on refused.device_id = page.id ${joinMutes('$8', 'page.id')}
        left join running on running.device_id = page.id
        left join newest on newest.device_id = page.id
        left join named using (content_id, pu_id, st_id)
       cross join lateral (
         select count(*)::integer as "openAlarms",
                min(coalesce(a.began_at, a.since_at)) as "alarmSinceTs",
                (array_agg(a.event_name order by array_position(array['info', 'warning', 'critical'], a.severity) desc,
                           coalesce(a.began_at, a.since_at)))[1]
                  as "alarmName"
           from alarm a
          where a.account_id = $1 and a.device_id = page.id and a.closed_at is null) alarms
       order by page.sort_key ${direction}, page.id ${direction}`,
    [
      ...own,
      cursor?.[0] ?? null,
      cursor?.[1] ?? null,
      limit + 1,
      filter.ids?.values?.map(({ id }) => id) ?? [],
      filter.ids?.values?.map(({ val }) => val) ?? [],
    ],
  );
  return rows;
}

/** All devices that match the filters, in the order of registration. */
export async function selectDevices(sql: Sql, filter: FleetFilter): Promise<string[]> {
  const { rows } = await sql.query<{ uuids: string | null }>(
    `
      select string_agg(d.uuid::text, ',' order by d.created_at, d.id) as uuids
        from device d
        join device_state s on s.device_id = d.id
        left join presence c on c.device_id = d.id ${joinMutes('$8')}
       where ${matching(filter)}`,
    valuesOf(filter),
  );
  return rows[0]?.uuids?.split(',') ?? [];
}

/** Devices by their newest values: only these, and none of those. Null: any, and all. `values`: to sort by. */
type ByValues = {
  in: number[] | null;
  notIn: number[] | null;
  values?: { id: number; val: number }[];
};

/**
 * Finds the devices for `value` and `beyond`, and the values to sort by, among those that have one of the labels (null:
 * among all).
 */
export type FindByValues = (
  sql: Sql,
  of: { accountId: number; labels: readonly string[] | null } & Pick<
    FleetQuery,
    'value' | 'beyond' | 'sort'
  >,
) => Promise<ByValues>;

/** Which devices to find. `labels`: only those that have one of these; null: any. */
type FleetFilter = FleetQuery & {
  accountId: number;
  labels: readonly string[] | null;
  /** The time that decides which mutes are over, ms. */
  nowTs: WallMs;
  /** Only this device; replaces `search`. */
  uuid?: string;
  /** Only devices whose newest values fit. Absent: any. */
  ids?: ByValues;
  /** Connectors whose devices keep no connection, for `presenceOf`. */
  intermittent: readonly number[];
};

/** Mutes that are not over, as SQL. `now`: the parameter with the time, ms. */
const joinMutes = (now: string, deviceId = 'd.id') => `
        left join device_mute m on m.device_id = ${deviceId} and m.until_at > ms_to_timestamp(${now}::bigint)`;

/** The account's devices within the allowed labels, as SQL: `$1` and `$2`. */
const within = 'd.account_id = $1 and ($2::text[] is null or d.labels && $2)';

const waits = `exists (
  select from device_profile p where p.device_id = d.id and p.state in ${textList(awaitingAnswer)})`;
/** A profile without purposes, as text, has two bytes. */
const runs = `exists (
  select from device_profile p
    join profile i on i.id = p.profile_id
    join profile_content c on c.id = i.content_id
   where p.device_id = d.id and p.state = 'current' and c.bytes > 2)`;

/** The devices that run, or wait for, a profile with one of these contents, as SQL. */
const hasContent = (contents: string) => `
  d.id in (select p.device_id
             from profile i
             join device_profile p on p.profile_id = i.id
            where i.content_id in (${contents}) and p.state in ${textList(neededStates)})`;
const hasContentOf = (pId: string) =>
  hasContent(`select content_id from profile where id = ${pId}::uuid and account_id = $1`);
const hasPurpose = (name: string) =>
  hasContent(`select c.id
               from profile_content c
              cross join lateral json_array_elements(c.purposes) purpose
              where c.account_id = $1 and (purpose -> 'name')::text = ${name}`);

/** Includes acknowledged alarms: the fault is still there. */
const hasAlarm = `
  d.id in (select a.device_id from alarm a where a.account_id = $1 and a.closed_at is null)`;

const isRefused = `
  d.id in (select r.device_id from refused_login r
            where r.account_id = $1 and r.is_open and r.device_id is not null)`;
const refusedFilter = (refused: boolean | undefined) => {
  if (refused === undefined) return 'true';
  return refused ? isRefused : `not (${isRefused})`;
};

const profileFilters = {
  pending: waits,
  current: runs,
  none: `not (${waits} or ${runs})`,
};

const isKind = (profile: string): profile is keyof typeof profileFilters =>
  Object.hasOwn(profileFilters, profile);

const searched = Object.entries(searchedMembers);
const searchedColumns = searched.map(([name, { column }]) => `d.${column} as "${name}"`).join(', ');

const search = `($3::text is null
                  or starts_with(d.uuid::text, lower($3))
                  or ${['name', ...searched.map(([, { column }]) => column)]
                    .map((column) => `strpos(lower(d.${column}), lower($3)) > 0`)
                    .join(' or ')})`;

/** Whether the device's connector cannot tell that it is there, as SQL. `ids`: the parameter with the connectors. */
const isIntermittent = (ids: string) =>
  `(c.connected is not true and coalesce(c.connector_id, d.connector_id) = any(${ids}::integer[]))`;

const presenceFilters = {
  online: 'c.connected',
  offline: `(c.connected is not true and not ${isIntermittent('$10')})`,
  intermittent: isIntermittent('$10'),
};

/** What narrows the whole list, as SQL: the counts are of these devices. */
const narrowed = ({
  uuid,
  profile,
  purpose,
}: FleetFilter) => `(${uuid === undefined ? search : 'd.uuid = $3::uuid'}
             and ($4::text[] is null or d.labels @> $4)
             and ($6::integer is null or (s.pu_id = $6 and s.st_id = $7::integer))
             and ($11::bigint[] is null or d.id = any($11))
             and ($12::bigint[] is null or d.id <> all($12))
             and ${typeof profile === 'string' && !isKind(profile) ? hasContentOf('$16') : '$16::uuid is null'}
             and ${purpose === undefined ? '$17::text is null' : hasPurpose('$17')}
             ${exact.map(([, column], n) => `and ($${13 + n}::text is null or d.${column} = $${13 + n})`).join(' ')})`;
const exact = Object.entries(exactMembers);

/** The condition for all filters, as SQL; `valuesOf` makes its parameters. */
const matching = (filter: FleetFilter) => `${within}
             and ${narrowed(filter)} and ${counted(filter)}`;

/** Those of the filters whose devices the counts have one by one. */
const counted = ({ alarm, refused, profile, presence }: FleetFilter) => `
             ($5::boolean is null or coalesce(c.connected, false) = $5)
             and ($9::boolean is null or (m.device_id is not null) = $9)
             and ($10::integer[] is not null and ${presence === undefined ? 'true' : presenceFilters[presence]})
             and ${alarm === undefined ? 'true' : hasAlarm}
             and ${refusedFilter(refused)}
             and ${profile !== undefined && isKind(profile) ? profileFilters[profile] : 'true'}`;

const valuesOf = ({
  accountId,
  labels,
  uuid,
  search,
  label,
  online,
  state,
  ...of
}: FleetFilter) => [
  accountId,
  labels,
  uuid ?? search ?? null,
  label ?? null,
  online ?? null,
  state?.puId ?? null,
  state?.stId ?? null,
  of.nowTs,
  of.muted ?? null,
  of.intermittent,
  of.ids?.in ?? null,
  of.ids?.notIn ?? null,
  ...exact.map(([name]) => of[name as keyof typeof exactMembers] ?? null),
  of.profile !== undefined && !isKind(of.profile) ? of.profile : null,
  // As JSON has it: a name may contain what text in the database cannot.
  of.purpose === undefined ? null : JSON.stringify(of.purpose),
];

type FleetCounts = NonNullable<DeviceList['counts']>;

const none: FleetCounts = {
  all: 0,
  within: 0,
  matching: 0,
  online: 0,
  offline: 0,
  intermittent: 0,
  alarm: 0,
  refused: 0,
  muted: 0,
  pendingProfile: 0,
};

/** Counts the devices within the allowed labels: all of them, those that match, and of the narrowed list each kind. */
async function countDevices(sql: Sql, filter: FleetFilter): Promise<FleetCounts> {
  const of = (condition: string) => `(count(*) filter (where ${condition}))::integer`;
  const is = (condition: string) => of(`${narrowed(filter)} and ${condition}`);
  const { rows } = await sql.query<FleetCounts>(
    `
      select count(*)::integer as all,
             ${of(narrowed(filter))} as within,
             ${of(`${narrowed(filter)} and ${counted(filter)}`)} as matching,
             ${is(presenceFilters.online)} as online,
             ${is(presenceFilters.offline)} as offline,
             ${is(presenceFilters.intermittent)} as intermittent,
             ${is(hasAlarm)} as alarm,
             ${is(isRefused)} as refused,
             ${is('m.device_id is not null')} as muted,
             ${is(waits)} as "pendingProfile"
        from device d
        join device_state s on s.device_id = d.id
        left join presence c on c.device_id = d.id ${joinMutes('$8')}
       where ${within}`,
    valuesOf(filter),
  );
  return rows[0] ?? none;
}
