import type { Sql } from '../db/sql.ts';
import { quietNow } from './alarm.ts';
import { listAlarms, type FoundAlarm } from './queries.ts';
import type { AlarmQuery, Delivery, ListedAlarm } from './schema.ts';
import { toAlarmView } from './view.ts';

type Position = { lat: number; long: number };
/** The newest values of senses, the first of one millisecond first. */
type Newest = Readonly<Record<string, { ts: number; vals: (number | Position)[] }>>;

export type ListDeps = {
  db: Sql;
  findNewest: (
    sql: Sql,
    wanted: { deviceId: number; sId: string }[],
  ) => Promise<ReadonlyMap<number, Newest>>;
  /** What became of messages about alarms. */
  listDeliveries: (
    sql: Sql,
    alarmIds: readonly number[],
  ) => Promise<ReadonlyMap<number, Delivery[]>>;
};

type Page = {
  alarms: ListedAlarm[];
  /** Behind which the next page begins. */ next: number | null;
};

/** A page of an account's alarms, with the newest values of their senses, and what became of messages. */
export function createListAlarms({ db, findNewest, listDeliveries }: ListDeps) {
  return async (
    owner: { accountId: number; within: readonly string[] | null },
    query: AlarmQuery,
    nowTs: number,
  ): Promise<Page> => {
    const { state, device: deviceUuid, label, limit, cursor } = query;
    const filter = { ...owner, state, deviceUuid, label, beforeId: cursor?.id };
    const found = await listAlarms(db, { ...filter, limit: limit + 1 });
    const page = found.slice(0, limit);
    const deliveries = await listDeliveries(
      db,
      page.map(({ alarm }) => alarm.alarmId),
    );
    const newest = await findNewest(db, sensesOf(page));
    const last = page.at(-1);
    return {
      alarms: page.map((one) => ({
        ...toAlarmView(one.alarm, aroundOf(one, newest, nowTs)),
        deliveries: deliveries.get(one.alarm.alarmId) ?? [],
      })),
      next: last && found.length > limit ? last.alarm.alarmId : null,
    };
  };
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
    const val = value?.vals.at(-1);
    if (!value || val === undefined) return [];
    if (typeof val === 'number') return [{ sId, val, ts: value.ts }];
    // Where it lies, not whether that agrees: of an event the same is told by what it compared.
    const told = alarm.event.cause.senses.find((sense) => sense.sId === sId);
    return [{ sId, val: told?.val ?? 0, ts: value.ts, lat: val.lat, long: val.long }];
  });
  return { deviceName, snoozed: quietNow(snooze, nowTs), muted: quietNow(mute, nowTs), values };
}
