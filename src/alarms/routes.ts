import { z } from 'zod';
import {
  AlarmCondition,
  AlarmNote,
  type AlarmState,
  type AlarmTold,
  AlarmValue,
  AlarmView,
} from '../contract/alarm.ts';
import { Severity } from '../contract/actions.ts';
import type { NotNotified } from '../contract/event.ts';
import { Text } from '../contract/values.ts';
import type { Sql } from '../db/sql.ts';
import { refuseLabelList } from '../devices/select.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { defineRoute, invalid, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import {
  cursorQuery,
  describeAs,
  DeviceParams,
  exampleIds,
  limitQuery,
  linkNext,
  timestamp,
  TimestampResponse,
} from '../http/schema.ts';
import {
  actOf,
  type AlarmActionDeps,
  alarmActionsRoute,
  alarmFilter,
  isAhead,
  Note,
  notAhead,
} from './actions.ts';
import { AlarmDelivery, listDeliveries } from '../notifications/routes.ts';
import {
  acknowledgeAlarm,
  type ActDeps,
  closeAlarm,
  muteDevice,
  reopenAlarm,
  snoozeAlarm,
  unmuteDevice,
  unsnoozeAlarm,
} from './act.ts';
import {
  type FindExtremes,
  type FindNewest,
  type Newest,
  newestOf,
  readExtremes,
} from './values.ts';
import { type FoundAlarm, listAlarms, listAlarmsById, noSuchAlarm, toAlarmView } from './rows.ts';
import {
  type AlarmGroup,
  type AlarmSearch,
  countAlarms,
  groupAlarms,
  searchAlarms,
} from './search.ts';
import type { QuotasOf } from '../notifications/daily-limits.ts';
import { FairBudget } from '../lib/fair-budget.ts';
import { quietNow } from './rules.ts';
import { AlarmsTold, listTold } from './told.ts';
import { listWorst } from './worst.ts';
import type { WallMs } from '../lib/clock-readings.ts';

export type AlarmRouteDeps = QuietRouteDeps & ListAlarmsDeps & AlarmActionDeps;

/** The routes for alarms: read them and act on them. An addition to the specification. */
export function alarmRoutes(deps: AlarmRouteDeps): Route[] {
  return [
    list(deps),
    one(deps),
    acknowledge(deps),
    close(deps),
    reopen(deps),
    alarmActionsRoute(deps),
    ...quietRoutes(deps),
  ];
}

const acknowledgeTold =
  'People are not notified of this alarm again; it is neither repeated nor escalated. An alarm ' +
  'that is already closed or acknowledged does not change.';
const closeTold =
  'While its condition holds, the answer is 409 `condition-holds` with the newest values, unless `force` is true. ' +
  "Closing ends the alarm's episode: the next firing opens another alarm and notifies people. If nothing fires and the " +
  'condition still holds after 30 minutes (or `actions.repeatMs`), another alarm opens, too. To keep an ongoing alarm ' +
  'quiet, acknowledge or snooze it instead. An alarm that is already closed does not change.';

function list(deps: AlarmRouteDeps): Route {
  // For each page the worst values of all open alarms are read: an account's requests for that take turns.
  const turns = new FairBudget({ most: Infinity, mostOfKey: () => 1 });
  return defineRoute({
    name: 'listAlarms',
    scope: 'alarms:read',
    method: 'get',
    path: '/v2/alarms',
    summary: 'Get alarms',
    description:
      'Newest first, unless `sort` says otherwise. A Link header names the next page. With `search`, `event`, ' +
      '`severity`, `notification`, `sort`, several labels, `counts` and `group`, of closed alarms the newest 50,000 count.',
    tag: actRoute.tag,
    auth: 'account',
    errors: [],
    responseHeaders: { Link: 'The next page, if there is one.' },
    query: AlarmQuery,
    response: AlarmList,
    answerBytes: 1_048_576,
    handler: async ({ account, query, request }) => {
      const { accountId } = account;
      const owner = { accountId, within: labelsOf(account) };
      const read = () => listPage(deps, owner, query, request.receivedTs);
      const { alarms, next, total, groups, told } = await (query.sort === 'worst'
        ? turns.run(`${accountId}`, read)
        : read());
      if (next !== null) linkNext(request, next);
      return { alarms, total, groups, told, timestamp: request.now() };
    },
  });
}

function one(deps: AlarmRouteDeps): Route {
  return defineRoute({
    name: 'getAlarm',
    scope: 'alarms:read',
    method: 'get',
    path: '/v2/alarms/{alarmId}',
    summary: 'Get an alarm',
    tag: actRoute.tag,
    auth: 'account',
    errors: [404],
    params: AlarmParams,
    response: AlarmAnswer,
    handler: async ({ account, params, request }) => {
      const owner = { accountId: account.accountId, within: labelsOf(account) };
      const alarm = await getAlarm(deps, owner, params.alarmId, request.receivedTs);
      return { alarm, timestamp: request.now() };
    },
  });
}

function acknowledge(deps: ActDeps): Route {
  return defineRoute({
    name: 'acknowledgeAlarm',
    ...actRoute,
    method: 'post',
    path: '/v2/alarms/{alarmId}/acknowledge',
    summary: 'Acknowledge an alarm',
    description: acknowledgeTold,
    params: AlarmParams,
    body: NoteBody,
    example: { note: 'The door was open.' },
    handler: async ({ account, params, body, request }) => {
      await acknowledgeAlarm(deps, actOf(account, request), params.alarmId, body?.note);
      return { timestamp: request.now() };
    },
  });
}

function close(deps: ActDeps): Route {
  return defineRoute({
    name: 'closeAlarm',
    ...actRoute,
    errors: [404, 409],
    method: 'post',
    path: '/v2/alarms/{alarmId}/close',
    summary: 'Close an alarm',
    description: closeTold,
    params: AlarmParams,
    body: CloseBody,
    example: { note: 'The sensor is being replaced.', force: true },
    handler: async ({ account, params, body, request }) => {
      const how = { text: body?.note, force: body?.force === true };
      await closeAlarm(deps, actOf(account, request), params.alarmId, how);
      return { timestamp: request.now() };
    },
  });
}

function reopen(deps: ActDeps): Route {
  return defineRoute({
    name: 'reopenAlarm',
    ...actRoute,
    errors: [404, 409],
    method: 'post',
    path: '/v2/alarms/{alarmId}/reopen',
    summary: 'Take back that an alarm was closed',
    description:
      'Within 60 seconds, of an alarm that a person closed, under the same profile, and while its condition holds; ' +
      'otherwise 409. Acknowledgement, announcement and timers are as before, and nobody is notified. An alarm that ' +
      'the event opened meanwhile becomes part of it. An alarm that is open does not change.',
    params: AlarmParams,
    handler: async ({ account, params, request }) => {
      await reopenAlarm(deps, actOf(account, request), params.alarmId);
      return { timestamp: request.now() };
    },
  });
}

type QuietRouteDeps = ActDeps & {
  /** Throws `not-found` unless the account has the device. */
  getDeviceId: (accountId: number, deviceAuthUuid: string) => Promise<number>;
};

/** The routes that suppress notifications for a while, of an alarm or of a device. */
function quietRoutes(deps: QuietRouteDeps): Route[] {
  return [snooze(deps), unsnooze(deps), mute(deps), unmute(deps)];
}

function snooze(deps: QuietRouteDeps): Route {
  return defineRoute({
    name: 'snoozeAlarm',
    ...actRoute,
    method: 'post',
    path: '/v2/alarms/{alarmId}/snooze',
    summary: 'Snooze an alarm',
    description:
      'Nobody is notified of this event of the device until then, neither of this alarm nor of ' +
      'later ones. An announcement and an acknowledgement are withdrawn: if the condition ' +
      'still holds afterwards, people are notified then. Installing another profile ends the ' +
      'snooze.',
    params: AlarmParams,
    body: QuietBody,
    example: exampleQuiet,
    handler: async ({ account, params, body, request }) => {
      const quiet = quietOf(body, request);
      await snoozeAlarm(deps, actOf(account, request), params.alarmId, quiet);
      return { timestamp: request.now() };
    },
  });
}

function unsnooze(deps: QuietRouteDeps): Route {
  return defineRoute({
    name: 'unsnoozeAlarm',
    ...actRoute,
    method: 'delete',
    path: '/v2/alarms/{alarmId}/snooze',
    summary: 'End a snooze',
    description: 'An open alarm that nobody was notified of is announced at once.',
    params: AlarmParams,
    handler: async ({ account, params, request }) => {
      await unsnoozeAlarm(deps, actOf(account, request), params.alarmId);
      return { timestamp: request.now() };
    },
  });
}

function mute(deps: QuietRouteDeps): Route {
  return defineRoute({
    name: 'muteDevice',
    ...actRoute,
    method: 'put',
    path: '/v2/devices/{deviceAuthUuid}/mute',
    summary: 'Mute a device',
    description:
      'Nobody is notified of any event of the device until then, including notices. Messages ' +
      'already sent stay sent; planned messages are postponed to the end of the mute.',
    params: DeviceParams,
    body: QuietBody,
    example: exampleQuiet,
    handler: async ({ account, params, body, request }) => {
      const quiet = quietOf(body, request);
      await muteDevice(deps, await targetOf(deps, account, params.deviceAuthUuid, request), quiet);
      return { timestamp: request.now() };
    },
  });
}

function unmute(deps: QuietRouteDeps): Route {
  return defineRoute({
    name: 'unmuteDevice',
    ...actRoute,
    method: 'delete',
    path: '/v2/devices/{deviceAuthUuid}/mute',
    summary: 'Unmute a device',
    description: 'Open alarms that nobody was notified of are announced at once.',
    params: DeviceParams,
    handler: async ({ account, params, request }) => {
      await unmuteDevice(deps, await targetOf(deps, account, params.deviceAuthUuid, request));
      return { timestamp: request.now() };
    },
  });
}

async function targetOf(
  { getDeviceId }: QuietRouteDeps,
  account: Account,
  uuid: string,
  request: RequestInfo,
) {
  const deviceId = await getDeviceId(account.accountId, uuid);
  return { ...actOf(account, request), deviceId, uuid };
}

/** Throws `invalid-input` if the time has passed, or is too far ahead. */
function quietOf({ untilTs, reason }: QuietBody, { receivedTs }: RequestInfo) {
  if (!isAhead(untilTs, receivedTs)) throw notAhead();
  return { untilTs, reason: reason ?? null };
}

/** What all routes that act on alarms have in common. */
const actRoute = {
  scope: 'alarms:write',
  tag: 'Alarms',
  auth: 'account',
  errors: [404],
  response: TimestampResponse,
} as const;

/** Where a page ends: the next one begins with alarms older than this. */
const AlarmCursor = z.object({
  id: z.int().min(0),
  key: z.union([Text, z.number()]).optional(),
});

const AlarmQuery = z.object({
  ...alarmFilter,
  sort: z
    .enum(['newest', 'oldest', 'severity', 'worst', 'name'])
    .optional()
    .meta({
      description:
        'newest (default: opened last), oldest (began first), the most severe first, worst (the value furthest beyond the ' +
        'limit, in parts of the limit, of the newest 5,000), or by the name of the device.',
    }),
  counts: z
    .enum(['true', 'false'], 'expected true or false')
    .optional()
    .meta({
      override: ({ jsonSchema }: { jsonSchema: object }) => {
        describeAs(jsonSchema, { type: 'boolean', description: 'Whether to add `total`.' });
      },
    }),
  group: z.enum(['event', 'label']).optional().meta({
    description: 'Adds `groups` of the matching alarms, at most 200, the worst and largest first.',
  }),
  told: z
    .enum(['true', 'false'], 'expected true or false')
    .optional()
    .meta({
      override: ({ jsonSchema }: { jsonSchema: object }) => {
        describeAs(jsonSchema, { type: 'boolean', description: 'Whether to add `told`.' });
      },
    }),
  limit: limitQuery(100, 10),
  cursor: cursorQuery(AlarmCursor),
});
type AlarmQuery = z.output<typeof AlarmQuery>;

export const ListedAlarm = AlarmView.safeExtend({
  conditions: z.array(AlarmCondition).meta({
    description:
      'What each cause required when the alarm opened, by `orderId`. Empty: an earlier version opened it.',
  }),
  firedWith: z.array(AlarmValue).meta({
    description: 'The measurements that opened it. A silence has its last value.',
  }),
  extreme: z
    .array(AlarmValue)
    .max(1)
    .meta({
      description:
        'The value furthest beyond the limit, from `beganTs` to `overTs`, for the first cause that has either `isGt` or ' +
        '`isLt` and neither `relative` nor `over`. Empty: there is none, it is not recorded, or there are too many values.',
    }),
  notes: z.array(AlarmNote).meta({
    description: 'What people wrote when they acknowledged or closed it, at most 20, oldest first.',
  }),
  deliveries: z.array(AlarmDelivery).meta({
    description: 'Newest first, at most 50. Kept as long as notifications are.',
  }),
}).meta({ id: 'Alarm' });
export type ListedAlarm = z.infer<typeof ListedAlarm>;

const AlarmList = z.object({
  alarms: z.array(ListedAlarm),
  total: z.int().optional().meta({ description: 'With `counts=true`: how many alarms match.' }),
  groups: z
    .array(
      z
        .object({
          name: z.string().meta({
            description: 'The event as in `event`, or the label; empty: devices without one.',
          }),
          total: z.int(),
          severity: Severity.meta({ description: 'The highest of the group.' }),
          beganTs: timestamp.meta({ description: 'Since when its oldest alarm lasts.' }),
        })
        .meta({ id: 'AlarmGroup' }),
    )
    .optional()
    .meta({ description: 'With `group`.' }),
  told: AlarmsTold.optional().meta({
    description: 'With `told=true`: who knows of the matching alarms that are open.',
  }),
  timestamp,
});
const AlarmAnswer = z.object({ alarm: ListedAlarm, timestamp });

/** The alarm in a path; anything that is not an alarm number gets 404. */
const AlarmParams = z.object({
  alarmId: z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .meta({
      override: ({ jsonSchema }: { jsonSchema: object }) => {
        for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key);
        Object.assign(jsonSchema, { type: 'integer', minimum: 0, example: exampleIds.alarm });
      },
    }),
});

const NoteBody = z.object({ note: Note }).meta({ id: 'AlarmNoteBody' }).optional();
const CloseBody = z
  .object({
    note: Note,
    force: z.boolean().optional().meta({ description: 'Close it although its condition holds.' }),
  })
  .meta({ id: 'CloseAlarm' })
  .optional();

/** Until when notifications are suppressed, and why. */
const QuietBody = z
  .object({
    untilTs: z.int().meta({
      description: 'Milliseconds since the Unix epoch, in the future, at most five years ahead.',
      example: 1893456000000,
    }),
    reason: Text.max(200).optional(),
  })
  .meta({ id: 'QuietUntil' });
type QuietBody = z.infer<typeof QuietBody>;

/** For the API reference: until 2030. */
const exampleQuiet: QuietBody = { untilTs: 1893456000000, reason: 'being repaired' };

type ListAlarmsDeps = {
  db: Sql;
  findNewest: FindNewest;
  findExtremes: FindExtremes;
  quotasOf: QuotasOf;
};

/** Whose alarms. `within`: only devices that have one of these labels; null: any device. */
type Owner = { accountId: number; within: readonly string[] | null };

type Page = {
  alarms: ListedAlarm[];
  /** Where the next page begins; null if there is none. */
  next: z.output<typeof AlarmCursor> | null;
  total: number | undefined;
  groups: AlarmGroup[] | undefined;
  told: AlarmsTold | undefined;
};

/** One page of an account's alarms, and where the next one begins. */
async function listPage(
  deps: ListAlarmsDeps,
  owner: Owner,
  query: AlarmQuery,
  nowTs: WallMs,
): Promise<Page> {
  const { state, device: deviceUuid, label: labels, limit } = query;
  const { search, event, severity, notification } = query;
  for (const label of labels ?? [])
    await refuseLabelList(deps.db, owner.accountId, { label, labels: owner.within });
  const asked = { ...owner, state, deviceUuid, labels, search, event, severity, notification };
  const [found, total, groups, told] = await Promise.all([
    findPage(deps, asked, query, nowTs),
    query.counts === 'true' ? countAlarms(deps.db, asked) : undefined,
    query.group ? groupAlarms(deps.db, asked, query.group) : undefined,
    query.told === 'true'
      ? listTold(deps.db, asked, { quotasOf: deps.quotasOf, nowTs })
      : undefined,
  ]);
  const page = withinBytes(found.slice(0, limit));
  const last = page.at(-1);
  return {
    alarms: await viewsOf(
      deps,
      page.map(({ one }) => one),
      nowTs,
    ),
    next: last && found.length > page.length ? last.place : null,
    total,
    groups,
    told,
  };
}

/** What a page may have of names, notes and conditions, in characters; the rest of an alarm is short. */
const mostOfPage = 524_288;

/** As many of these alarms as one answer has room for, at least one: names and notes may be long. */
function withinBytes(found: Listed[]): Listed[] {
  let length = 0;
  const end = found.findIndex(({ one: { alarm, deviceName, notes } }) => {
    const { purposeName, stateName, eventName, conditions, firedWith } = alarm;
    length += JSON.stringify([purposeName, stateName, eventName, deviceName, notes]).length;
    length += JSON.stringify([conditions, firedWith]).length;
    return length > mostOfPage;
  });
  return end < 0 ? found : found.slice(0, Math.max(1, end));
}

type Listed = { one: FoundAlarm; place: z.output<typeof AlarmCursor> };

/** One more than the page has, if there is a next one. Newest first with at most one label, indexes find them. */
async function findPage(
  { db: sql, findExtremes, findNewest }: ListAlarmsDeps,
  asked: AlarmSearch & { state?: AlarmState | undefined },
  { sort = 'newest', cursor, limit }: AlarmQuery,
  nowTs: WallMs,
): Promise<Listed[]> {
  const { search, event, severity, notification, labels = [] } = asked;
  const isNarrow = search || event || severity || notification !== undefined || labels.length > 1;
  const isPlain = sort === 'newest' && !isNarrow;
  if (isPlain) {
    const [label] = labels;
    const found = await listAlarms(sql, {
      ...asked,
      label,
      beforeId: cursor?.id,
      limit: limit + 1,
    });
    return found.map((one) => ({ one, place: { id: one.alarm.alarmId } }));
  }
  const after = cursor && { id: cursor.id, key: cursor.key ?? cursor.id };
  if (after && !isOfOrder(sort, after.key))
    throw invalid([{ path: 'cursor', message: 'is not a cursor of this order' }]);
  const places =
    sort === 'worst'
      ? await listWorst(sql, { findExtremes, findNewest }, asked, {
          after: after && { id: after.id, key: Number(after.key) },
          limit: limit + 1,
          nowTs,
        })
      : await searchAlarms(sql, asked, { order: sort, after, limit: limit + 1 });
  const byId = new Map(places.map((place) => [place.id, place]));
  const found = await listAlarmsById(sql, asked.accountId, [...byId.keys()]);
  return found.map((one) => {
    const { alarmId: id } = one.alarm;
    return { one, place: byId.get(id) ?? { id } };
  });
}

function isOfOrder(sort: AlarmQuery['sort'], key: string | number): boolean {
  if (sort === 'name') return typeof key === 'string';
  if (typeof key === 'string') return false;
  if (sort === 'worst') return true;
  const isPlace = Number.isSafeInteger(key) && key >= 0;
  return isPlace && (sort !== 'severity' || key < Severity.options.length);
}

/** Throws `not-found`, also for an alarm of another account. */
async function getAlarm(
  deps: ListAlarmsDeps,
  owner: Owner,
  alarmId: number,
  nowTs: WallMs,
): Promise<ListedAlarm> {
  const found = await listAlarms(deps.db, { ...owner, alarmId, limit: 1 });
  const [alarm] = await viewsOf(deps, found, nowTs);
  if (!alarm) throw noSuchAlarm();
  return alarm;
}

/** Adds the newest values of their senses, and the messages about them. */
async function viewsOf(
  { db, findNewest, findExtremes }: ListAlarmsDeps,
  page: FoundAlarm[],
  nowTs: WallMs,
): Promise<ListedAlarm[]> {
  const deliveries = await listDeliveries(
    db,
    page.map(({ alarm }) => alarm.alarmId),
  );
  const newest = await findNewest(db, sensesOf(page));
  const unread = page.filter(({ alarm, isDue }) => isDue || alarm.closedTs === null);
  const extremes = await readExtremes(
    db,
    findExtremes,
    unread.map(({ alarm }) => alarm),
    nowTs,
  );
  return page.map((one) => ({
    ...toAlarmView(one.alarm, aroundOf(one, newest, nowTs)),
    conditions: one.alarm.conditions,
    firedWith: one.alarm.firedWith,
    extreme: extremeOf(one, extremes),
    notes: one.notes,
    deliveries: deliveries.get(one.alarm.alarmId) ?? [],
  }));
}

function extremeOf({ alarm, extreme }: FoundAlarm, read: ReadonlyMap<number, AlarmValue>) {
  const value = read.get(alarm.alarmId);
  return value ? [value] : extreme;
}

/** Each sense once, however many alarms read it. */
function sensesOf(page: FoundAlarm[]): { deviceId: number; sId: string }[] {
  const senses = new Map<string, { deviceId: number; sId: string }>();
  for (const { alarm } of page)
    for (const sId of alarm.sIds)
      senses.set(`${alarm.device.deviceId} ${sId}`, { deviceId: alarm.device.deviceId, sId });
  return [...senses.values()];
}

function aroundOf(
  { alarm, deviceName, snooze, mute }: FoundAlarm,
  newest: ReadonlyMap<number, Newest>,
  nowTs: WallMs,
) {
  const values = newestOf(alarm, newest);
  return { deviceName, snoozed: quietNow(snooze, nowTs), muted: quietNow(mute, nowTs), values };
}

/** The state of an event's alarm, and until when it is snoozed. Ms. */
type Standing = {
  state?: 'open' | 'acknowledged';
  told?: AlarmTold;
  notNotified?: NotNotified;
  snoozedUntilTs?: number;
};

type Row = {
  key: string;
  is_open: boolean;
  acknowledged_at: number | null;
  told: AlarmTold | null;
  not_notified: NotNotified | null;
  until_at: number | null;
};

/** Events of a device that have an open alarm, or a snooze under that profile, by "puId/stId/evId". */
export async function listStandings(
  db: Sql,
  { deviceId, pId }: { deviceId: number; pId: string },
): Promise<Map<string, Standing>> {
  const { rows } = await db.query<Row>(
    `
      select concat_ws('/', pu_id, st_id, ev_id) as key,
             a.id is not null as is_open, a.acknowledged_at, a.told, a.not_notified, s.until_at
        from (select * from alarm where device_id = $1 and closed_at is null) as a
        full join (select * from alarm_snooze where device_id = $1 and p_id = $2) as s
       using (pu_id, st_id, ev_id)`,
    [deviceId, pId],
  );
  return new Map(rows.map((row) => [row.key, toStanding(row)]));
}

function toStanding(row: Row): Standing {
  const snooze = row.until_at === null ? {} : { snoozedUntilTs: row.until_at };
  if (!row.is_open) return snooze;
  return {
    state: row.acknowledged_at === null ? 'open' : 'acknowledged',
    ...(row.told === null ? {} : { told: row.told }),
    ...(row.not_notified === null ? {} : { notNotified: row.not_notified }),
    ...snooze,
  };
}

/** Until when a device is muted, ms; undefined if it is not. */
export async function findMute(db: Sql, deviceId: number): Promise<number | undefined> {
  const { rows } = await db.query<{ until_at: number }>(
    'select until_at from device_mute where device_id = $1',
    [deviceId],
  );
  return rows[0]?.until_at;
}
