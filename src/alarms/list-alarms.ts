import { lastOf, type Position } from '../contract/measurement.ts';
import type { Sql } from '../db/sql.ts';
import { refuseLabelList } from '../exports/list-devices.ts';
import { quietNow } from './alarm.ts';
import { listAlarms, noSuchAlarm, type FoundAlarm } from './queries.ts';
import type { AlarmQuery, AlarmDelivery, ListedAlarm } from './schema.ts';
import { toAlarmView } from './view.ts';

type Value = number | Position;

/** The newest values of senses, the first of one millisecond first; `last`: the last of them, where it is not there. */
type Newest = Readonly<Record<string, { ts: number; vals: Value[]; last?: Value }>>;

export type ListAlarmsDeps = {
  db: Sql;
  findNewest: (
    sql: Sql,
    wanted: { deviceId: number; sId: string }[],
  ) => Promise<ReadonlyMap<number, Newest>>;
  /** What became of messages about alarms. */
  listDeliveries: (
    sql: Sql,
    alarmIds: readonly number[],
  ) => Promise<ReadonlyMap<number, AlarmDelivery[]>>;
};

/** Whose alarms. `within`: only of devices that have one of these labels; null: of any. */
type Owner = { accountId: number; within: readonly string[] | null };

type Page = {
  alarms: ListedAlarm[];
  /** Behind which the next page begins. */
  next: number | null;
};

/** Of a page of an account's alarms also where the next one begins. */
export async function listPage(
  deps: ListAlarmsDeps,
  owner: Owner,
  query: AlarmQuery,
  nowTs: number,
): Promise<Page> {
  const { state, device: deviceUuid, label, limit, cursor } = query;
  await refuseLabelList(deps.db, owner.accountId, { label, labels: owner.within });
  const filter = { ...owner, state, deviceUuid, label, beforeId: cursor?.id };
  const found = await listAlarms(deps.db, { ...filter, limit: limit + 1 });
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return {
    alarms: await viewsOf(deps, page, nowTs),
    next: last && found.length > limit ? last.alarm.alarmId : null,
  };
}

/** Throws `not-found`, also for an alarm of somebody else. */
export async function getAlarm(
  deps: ListAlarmsDeps,
  owner: Owner,
  alarmId: number,
  nowTs: number,
): Promise<ListedAlarm> {
  const found = await listAlarms(deps.db, { ...owner, alarmId, limit: 1 });
  const [alarm] = await viewsOf(deps, found, nowTs);
  if (!alarm) throw noSuchAlarm();
  return alarm;
}

/** With the newest values of their senses, and what became of messages. */
async function viewsOf(
  { db, findNewest, listDeliveries }: ListAlarmsDeps,
  page: FoundAlarm[],
  nowTs: number,
): Promise<ListedAlarm[]> {
  const deliveries = await listDeliveries(
    db,
    page.map(({ alarm }) => alarm.alarmId),
  );
  const newest = await findNewest(db, sensesOf(page));
  return page.map((one) => ({
    ...toAlarmView(one.alarm, aroundOf(one, newest, nowTs)),
    deliveries: deliveries.get(one.alarm.alarmId) ?? [],
  }));
}

/** Each once, however many alarms read it. */
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
  nowTs: number,
) {
  const own = newest.get(alarm.device.deviceId) ?? {};
  const values = alarm.sIds.flatMap((sId) => {
    const value = Object.hasOwn(own, sId) ? own[sId] : undefined;
    const val = lastOf(value);
    if (!value || val === undefined) return [];
    if (typeof val === 'number') return [{ sId, val, ts: value.ts }];
    // Where it lies, not whether that agrees: of an event the same is told by what it compared.
    const told = alarm.event.cause.senses.find((sense) => sense.sId === sId);
    return [{ sId, val: told?.val ?? 0, ts: value.ts, lat: val.lat, long: val.long }];
  });
  return { deviceName, snoozed: quietNow(snooze, nowTs), muted: quietNow(mute, nowTs), values };
}
