import { insertEntry } from '../audit/queries.ts';
import type { DoneBy } from '../audit/entry.ts';
import type { AuditKind } from '../audit/schema.ts';
import type { Bus } from '../bus/bus.ts';
import type { AlarmChangeKind } from '../contract/alarm.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { nameKey, type Alarm, type Quiet } from './alarm.ts';
import { changeAlarms, type AlarmChange } from './change-alarms.ts';
import { loadDevices, type LoadedDevice } from './load.ts';
import type { PutOffPlanned, Telling } from './ports.ts';
import { getAlarmDevice, hasProfile, removeMute, removeSnooze } from './queries.ts';
import { saveMute, saveSnooze } from './queries.ts';
import { closedAs } from './rules/close.ts';
import { acknowledged, snoozed, unquieted } from './rules/person.ts';

export type ActDeps = {
  db: Database;
  bus: Bus;
  telling: Telling & { putOffPlanned: PutOffPlanned };
};

/** Whose alarm or device it is, and who does something with it. `within`: only with devices of these labels; null: any. */
export type Act = { accountId: number; within: readonly string[] | null; by: DoneBy };

export type Target = Act & { deviceId: number; uuid: string };

/** An alarm's device, read and kept from others; `own` is the alarm, where it is still open. */
type Held = Target & {
  tx: Sql;
  device: LoadedDevice | undefined;
  ts: number;
};

const personOf = ({ actor }: DoneBy): string => actor.sessionId ?? actor.by;

/** Nobody is told of it again. What is closed, or acknowledged already, stays as it is. Throws `not-found`. */
export function acknowledgeAlarm(deps: ActDeps, act: Act, alarmId: number): Promise<void> {
  return actOnAlarm(deps, act, alarmId, async (held, { own }) => {
    const set = own && acknowledged(own, personOf(act.by), held.ts);
    if (!own || !set) return null;
    await change(held, [{ alarmId, change: 'acknowledged', ts: held.ts, set }]);
    await deps.telling.dropPlanned(held.tx, [alarmId]);
    return 'alarm-acknowledged';
  });
}

/** Closes it, and with it the episode: the next firing opens another one. Throws `not-found`. */
export function closeAlarm(deps: ActDeps, act: Act, alarmId: number): Promise<void> {
  return actOnAlarm(deps, act, alarmId, async (held, { own }) => {
    if (!own) return null;
    const { tx, ts } = held;
    const set = closedAs('person', ts);
    await change(held, [{ alarmId, change: 'closed', ts, set }]);
    await deps.telling.dropPlanned(tx, [alarmId]);
    if (own.announcement > 0)
      await deps.telling.tellOver(tx, [
        { alarmId, closedBy: 'person', closedTs: ts, lastedWithState: own.movedTo !== null },
      ]);
    return 'alarm-closed';
  });
}

/** Nobody is told of its event until then: of this alarm, and of later ones. Throws `not-found`. */
export function snoozeAlarm(
  deps: ActDeps,
  act: Act,
  alarmId: number,
  quiet: Pick<Quiet, 'untilTs' | 'reason'>,
): Promise<void> {
  return actOnAlarm(deps, act, alarmId, async (held, { of, pId, open }) => {
    const { tx, ts, deviceId } = held;
    // Of another profile's event there are no later alarms.
    if (!open && !(await hasProfile(tx, deviceId, pId))) return null;
    await saveSnooze(tx, deviceId, { ...quiet, of, pId, by: personOf(act.by), ts });
    const set = open && snoozed(open, quiet);
    if (open && set) {
      await change(held, [{ alarmId: open.alarmId, change: 'snoozed', ts, set }]);
      await deps.telling.dropPlanned(tx, [open.alarmId]);
    }
    return 'alarm-snoozed';
  });
}

/** Its event may be told of again: what is open and was not told is told at once. Throws `not-found`. */
export function unsnoozeAlarm(deps: ActDeps, act: Act, alarmId: number): Promise<void> {
  return actOnAlarm(deps, act, alarmId, async (held, { of, open }) => {
    const { tx, ts, deviceId, device } = held;
    const snooze = device?.snoozes.find((one) => nameKey(one.of) === nameKey(of));
    if (!snooze) return null;
    await removeSnooze(tx, deviceId, of);
    const set = open && unquieted(open, ts, snooze.untilTs);
    if (open)
      await change(held, [{ alarmId: open.alarmId, change: 'unsnoozed', ts, set: set ?? {} }]);
    return 'alarm-unsnoozed';
  });
}

/** Nobody is told of any event of the device until then. */
export function muteDevice(
  deps: ActDeps,
  target: Target,
  quiet: Pick<Quiet, 'untilTs' | 'reason'>,
): Promise<void> {
  return actOnDevice(deps, target, (held) => mute(deps, held, quiet));
}

/** People are told of the device's events again: of what is open and was not told at once. */
export function unmuteDevice(deps: ActDeps, target: Target): Promise<void> {
  return actOnDevice(deps, target, unmute);
}

/** The same of both within the caller's transaction: until then, or (null) not any more. Streams are not told. */
export function quietenWithin(
  tx: Sql,
  deps: ActDeps,
  target: Target,
  quiet: Pick<Quiet, 'untilTs' | 'reason'> | null,
): Promise<void> {
  return actWithin(tx, target, (held) => (quiet ? mute(deps, held, quiet) : unmute(held)));
}

async function mute(
  { telling }: ActDeps,
  held: Held,
  quiet: Pick<Quiet, 'untilTs' | 'reason'>,
): Promise<AuditKind> {
  const { tx, ts, deviceId, device, by } = held;
  const ended = device?.mute && device.mute.untilTs > quiet.untilTs ? device.mute : null;
  await saveMute(tx, deviceId, { ...quiet, by: personOf(by), ts });
  await telling.putOffPlanned(tx, deviceId, quiet.untilTs);
  if (ended) await wake(held, ended.untilTs, quiet.untilTs);
  return 'device-muted';
}

async function unmute(held: Held): Promise<AuditKind | null> {
  const before = held.device?.mute;
  if (!before) return null;
  await removeMute(held.tx, held.deviceId);
  await wake(held, before.untilTs, held.ts);
  return 'device-unmuted';
}

/** The timer of what a mute put off looks at `nextTs` instead of the mute's end. */
async function wake(held: Held, quietUntilTs: number, nextTs: number): Promise<void> {
  const changes = (held.device?.open ?? []).flatMap((alarm): AlarmChange[] => {
    const set = unquieted(alarm, nextTs, quietUntilTs);
    const change: AlarmChangeKind = 'unsnoozed';
    return set ? [{ alarmId: alarm.alarmId, change, ts: held.ts, set }] : [];
  });
  await change(held, changes);
}

async function change({ tx }: Held, changes: AlarmChange[]): Promise<void> {
  await changeAlarms(tx, changes);
}

type OfAlarm = {
  of: Alarm['of'];
  pId: string;
  /** The alarm itself, where it is open, and the one that is open of its event. */
  own: Alarm | null;
  open: Alarm | null;
};

async function actOnAlarm(
  deps: ActDeps,
  act: Act,
  alarmId: number,
  work: (held: Held, alarm: OfAlarm) => Promise<AuditKind | null>,
): Promise<void> {
  const { deviceId, uuid, of, pId } = await getAlarmDevice(deps.db, act, alarmId);
  await actOnDevice(
    deps,
    { ...act, deviceId, uuid },
    (held) => {
      const open = held.device?.open.find((one) => nameKey(one.of) === nameKey(of)) ?? null;
      const own = open?.alarmId === alarmId ? open : null;
      return work(held, { of, pId, own, open });
    },
    { alarmId },
  );
}

/** Does something with a device's alarms, and writes it down where it changed anything (`work` says as what). */
async function actOnDevice(
  { db, bus }: ActDeps,
  target: Target,
  work: (held: Held) => Promise<AuditKind | null>,
  details: { alarmId?: number } = {},
): Promise<void> {
  const { accountId, deviceId } = target;
  await db.transaction((tx) => actWithin(tx, target, work, details));
  bus.publish('events', { accountIds: [accountId], deviceIds: [deviceId] });
}

async function actWithin(
  tx: Sql,
  target: Target,
  work: (held: Held) => Promise<AuditKind | null>,
  details: { alarmId?: number } = {},
): Promise<void> {
  const { accountId, deviceId, uuid, by } = target;
  const device = (await loadDevices(tx, [deviceId])).get(deviceId);
  const kind = await work({ ...target, tx, device, ts: by.ts });
  if (!kind) return;
  const entry = { kind, ...by, details: { ...details, deviceAuthUuid: uuid } };
  await insertEntry(tx, accountId, entry);
}
