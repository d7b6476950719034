import { type AuditKind, type DoneBy, insertEntries, insertEntry } from '../audit/audit.ts';
import type { Bus } from '../bus/bus.ts';
import type { AlarmChangeKind, AlarmNote } from '../contract/alarm.ts';
import type { EventName } from '../contract/event.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { QuotasOf } from '../notifications/daily-limits.ts';
import { type ClosedAlarm, endMessages } from '../notifications/ended.ts';
import { putOffPlanned, takeMessages } from '../notifications/outbox.ts';
import { type AlarmDevice, findAlarmDevices, noSuchAlarm } from './rows.ts';
import {
  acknowledgedAlarm,
  type Alarm,
  closedByPerson,
  isHolding,
  nameKey,
  type Quiet,
  reopened,
  reopenMs,
  snoozed,
  unquieted,
} from './rules.ts';
import {
  addNote,
  changeAlarms,
  loadDevices,
  type LoadedDevice,
  lockRows,
  type StoredChange,
  takeIn,
} from './store.ts';
import { type FindNewest, newestOf } from './values.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/**
 * Stops further notifications of this alarm. No change but the note if it is closed or already acknowledged. Throws
 * `not-found`.
 */
export function acknowledgeAlarm(
  deps: ActDeps,
  act: Act,
  alarmId: number,
  text: string | undefined,
): Promise<void> {
  return actOnAlarm(deps, act, alarmId, acknowledging(text), text);
}

const acknowledging =
  (text: string | undefined): Work =>
  async (held, { alarmId, own }) => {
    await writeNote(held, alarmId, { on: 'acknowledge', text });
    const set = own && acknowledgedAlarm(own, personOf(held.by), held.ts);
    if (!own || !set) return text ? { kind: 'alarm-noted' } : null;
    await changeAlarms(held.tx, [{ alarmId, change: 'acknowledged', ts: held.ts, set }]);
    return { kind: 'alarm-acknowledged', dropped: alarmId };
  };

async function writeNote(
  { tx, by, ts }: HeldDevice,
  alarmId: number,
  { on, text }: { on: AlarmNote['on']; text: string | undefined },
): Promise<void> {
  if (text) await addNote(tx, alarmId, { ts, by: personOf(by), on, text });
}

/**
 * Closes the alarm, and with it the episode: the next firing opens another alarm, and so does time if the condition
 * still holds then. Throws `condition-holds` if it holds now, unless `force`, and `not-found`. No change but the note
 * if it is closed already.
 */
export function closeAlarm(deps: ActDeps, act: Act, alarmId: number, how: Closing): Promise<void> {
  return actOnAlarm(deps, act, alarmId, closing(deps, how), how.text);
}

type Closing = { text: string | undefined; force: boolean; jobId?: string };

const closing =
  (deps: ActDeps, { text, force, jobId }: Closing): Work =>
  async (held, { alarmId, own }) => {
    if (own && isHolding(own) && !force) throw await holding(deps, held.tx, own);
    await writeNote(held, alarmId, { on: 'close', text });
    if (!own) return text ? { kind: 'alarm-noted' } : null;
    const { tx, ts } = held;
    const set = closedByPerson(own, ts, jobId);
    await changeAlarms(tx, [{ alarmId, change: 'closed', ts, set }]);
    return { kind: 'alarm-closed', dropped: alarmId, ...closedNow(own, ts) };
  };

/** What those hear who were notified of an alarm that a person closes. */
function closedNow(alarm: Alarm, closedTs: number): Pick<Done, 'closed'> {
  const { alarmId, announcement, beganTs, overTs, filledTs, movedTo } = alarm;
  if (announcement === 0) return {};
  const lasted = { beganTs, overTs, filledTs, lastedWithState: movedTo !== null };
  return { closed: { alarmId, closedBy: 'person', closedTs, ...lasted } };
}

async function holding({ findNewest }: ActDeps, tx: Sql, alarm: Alarm): Promise<DomainError> {
  const { deviceId } = alarm.device;
  const newest = await findNewest(
    tx,
    alarm.sIds.map((sId) => ({ deviceId, sId })),
  );
  const message =
    'The condition of this alarm holds by the newest values. With `force` it is closed all the same.';
  return new DomainError('condition-holds', message, { values: newestOf(alarm, newest) });
}

/**
 * Takes back that a person closed the alarm, within a minute and under the same profile. Its acknowledgement,
 * announcement and timers are as before, and nobody is notified. An alarm that its event opened meanwhile becomes part
 * of it, with its messages, its notes and its acknowledgement. Messages that were planned for later when it closed stay
 * dropped. Throws `not-found` and `conflict`.
 */
export function reopenAlarm(deps: ActDeps, act: Act, alarmId: number): Promise<void> {
  return actOnAlarm(deps, act, alarmId, reopening({}));
}

/** Takes back a job: only what it did itself, and nobody has changed since. */
type Undoing = { undoes?: string | undefined };

const reopening =
  ({ undoes }: Undoing): Work =>
  async (held, { alarmId, pId, own, open }) => {
    if (own) return null;
    const { tx, ts, deviceId } = held;
    const [alarm] = await lockRows(tx, [alarmId]);
    if (!alarm) throw noSuchAlarm();
    const isLate =
      undoes === undefined
        ? ts - (alarm.closedTs ?? 0) > reopenMs
        : alarm.closedWith?.jobId !== undoes;
    if (alarm.closedBy !== 'person' || isLate)
      throw new DomainError('conflict', 'Nobody closed this alarm in the last minute.');
    const isSame = await hasProfile(tx, deviceId, pId);
    const set = isSame ? reopened(alarm, open) : null;
    if (!set) throw new DomainError('conflict', 'The condition of this alarm has ended since.');
    if (open) {
      await takeMessages(tx, alarm, open.alarmId);
      await takeIn(tx, alarmId, open.alarmId);
    }
    await changeAlarms(tx, [{ alarmId, change: 'reopened', ts, set }]);
    const isAcknowledged = typeof set.acknowledgedTs === 'number';
    return { kind: 'alarm-reopened', ...(isAcknowledged ? { dropped: alarmId } : {}) };
  };

export type ActDeps = {
  db: Database;
  bus: Bus;
  quotasOf: QuotasOf;
  findNewest: FindNewest;
};

/** Whose alarm or device, and who acts. `within`: only devices that have one of these labels; null: any device. */
export type Act = { accountId: number; within: readonly string[] | null; by: DoneBy };

/** The device to act on. */
type Target = Act & { deviceId: number; uuid: string };

/** A device with its alarms, read and locked. */
type HeldDevice = Target & {
  tx: Sql;
  device: LoadedDevice | undefined;
  ts: number;
};

/** What is stored as the person: the session's identifier, or the kind of caller. */
const personOf = ({ actor }: DoneBy): string => actor.sessionId ?? actor.by;

type OfAlarm = {
  alarmId: number;
  of: Alarm['of'];
  pId: string;
  /** The alarm itself if it is open, and the open alarm of its event. */
  own: Alarm | null;
  open: Alarm | null;
};

/**
 * What is done with an alarm, in the transaction; null: nothing changed. It leaves messages about the alarm to
 * `finish`.
 */
type Work = (held: HeldDevice, alarm: OfAlarm) => Promise<Done | null>;

/** As what it is audited, the alarm whose planned messages go, and the one that is over. */
type Done = { kind: AuditKind; dropped?: number; closed?: ClosedAlarm };

/** Does what follows for messages, for all alarms of the transaction at once. */
function finish(tx: Sql, { quotasOf }: ActDeps, done: readonly Done[], nowTs: WallMs) {
  const dropped = done.flatMap((one) => one.dropped ?? []);
  const closed = done.flatMap((one) => one.closed ?? []);
  return endMessages(tx, { dropped, closed }, { quotasOf, nowTs });
}

/** Acts on an alarm, and audits it with the note if anything changed. Throws `not-found`. */
async function actOnAlarm(
  deps: ActDeps,
  act: Act,
  alarmId: number,
  work: Work,
  note?: string,
): Promise<void> {
  const { db, bus } = deps;
  const { accountId, by } = act;
  const [found] = await findAlarmDevices(db, act, [alarmId]);
  if (!found) throw noSuchAlarm();
  const { deviceId, uuid } = found;
  await db.transaction(async (tx) => {
    const loaded = await loadDevices(tx, [deviceId]);
    const done = await workOn(tx, { act, loaded, found }, work);
    if (!done) return;
    const { kind } = done;
    await finish(tx, deps, [done], by.ts);
    const details = { alarmId, deviceAuthUuid: uuid, ...(note ? { note } : {}) };
    await insertEntry(tx, accountId, { kind, ...by, details });
  });
  bus.publish('events', { accountIds: [accountId], deviceIds: [deviceId] });
}

function workOn(
  tx: Sql,
  {
    act,
    loaded,
    found,
  }: { act: Act; loaded: ReadonlyMap<number, LoadedDevice>; found: AlarmDevice },
  work: Work,
): Promise<Done | null> {
  const { alarmId, deviceId, uuid, of, pId } = found;
  const device = loaded.get(deviceId);
  const open = device?.open.find((one) => nameKey(one.of) === nameKey(of)) ?? null;
  const own = open?.alarmId === alarmId ? open : null;
  const held = { ...act, deviceId, uuid, tx, device, ts: act.by.ts };
  return work(held, { alarmId, of, pId, own, open });
}

/** What can be done with many alarms at once. */
export type AlarmAction =
  | { action: 'acknowledge'; note?: string | undefined }
  | { action: 'close'; note?: string | undefined; force?: boolean | undefined }
  | ({ action: 'reopen' } & Undoing)
  | ({ action: 'snooze' } & Until)
  | ({ action: 'unsnooze' } & Undoing);

/** An alarm with which it could not be done. `uuid`: its device's, if there is such an alarm. */
type NotDone = { alarmId: number; uuid?: string; error: DomainError };

/**
 * Acts on alarms of a job in the caller's transaction. Each for which it cannot be done stays as it is. It audits
 * nothing, and publishes nothing to streams.
 */
export async function actWithin(
  tx: Sql,
  deps: ActDeps,
  act: Act,
  { action, alarmIds, jobId }: { action: AlarmAction; alarmIds: readonly number[]; jobId: string },
): Promise<{ deviceIds: number[]; failed: NotDone[] }> {
  const all = await findAlarmDevices(tx, act, alarmIds);
  const deviceIds = [...new Set(all.map(({ deviceId }) => deviceId))];
  const work = workOf(deps, action, jobId);
  const done: Done[] = [];
  const failed: NotDone[] = [];
  const first = await loadDevices(tx, deviceIds);
  const changed = new Set<number>();
  // The newest first: of two alarms of an event that open again, the older one takes the newer one in.
  for (const alarmId of alarmIds.toSorted((one, other) => other - one)) {
    const found = all.find((one) => one.alarmId === alarmId);
    try {
      if (!found) throw noSuchAlarm();
      const { deviceId } = found;
      const loaded = changed.has(deviceId) ? await loadDevices(tx, [deviceId]) : first;
      changed.add(deviceId);
      const one = await workOn(tx, { act, loaded, found }, work);
      if (one) done.push(one);
    } catch (error) {
      // Thrown before anything is written.
      if (!(error instanceof DomainError)) throw error;
      failed.push({ alarmId, ...(found ? { uuid: found.uuid } : {}), error });
    }
  }
  await finish(tx, deps, done, act.by.ts);
  return { deviceIds, failed };
}

function workOf(deps: ActDeps, action: AlarmAction, jobId: string): Work {
  switch (action.action) {
    case 'acknowledge':
      return acknowledging(action.note);
    case 'close':
      return closing(deps, { text: action.note, force: action.force ?? false, jobId });
    case 'reopen':
      return reopening(action);
    case 'snooze':
      return snoozing({ ...action, jobId });
    case 'unsnooze':
      return unsnoozing(action);
  }
}

type Until = Pick<Quiet, 'untilTs' | 'reason'>;

/** Devices of one account, and who mutes them. */
type Muted = {
  accountId: number;
  by: DoneBy;
  devices: readonly { deviceId: number; uuid: string }[];
};

/** Suppresses notifications of all events of the device until then. */
export function muteDevice(deps: ActDeps, target: Target, until: Until): Promise<void> {
  return change(deps, target, until);
}

/** Notifications of the device's events resume, including open alarms that were not announced. */
export function unmuteDevice(deps: ActDeps, target: Target): Promise<void> {
  return change(deps, target, null);
}

async function change({ db, bus }: ActDeps, target: Target, until: Until | null) {
  const { accountId, deviceId, uuid, by } = target;
  const devices = [{ deviceId, uuid }];
  await db.transaction((tx) => muteWithin(tx, { accountId, by, devices }, until));
  bus.publish('events', { accountIds: [accountId], deviceIds: [deviceId] });
}

/**
 * Mutes many devices in the caller's transaction; null ends their mutes. It takes the same number of statements however
 * many devices there are. It publishes nothing to streams.
 */
export async function muteWithin(
  tx: Sql,
  { accountId, by, devices }: Muted,
  until: Until | null,
): Promise<void> {
  const ids = devices.map(({ deviceId }) => deviceId);
  const loaded = await loadDevices(tx, ids);
  const changed = devices.filter(({ deviceId }) => {
    const device = loaded.get(deviceId);
    return device !== undefined && (until !== null || device.mute !== null);
  });
  if (changed.length === 0) return;
  const changedIds = changed.map(({ deviceId }) => deviceId);
  if (until) {
    await saveMutes(tx, changedIds, { ...until, by: personOf(by), ts: by.ts });
    await putOffPlanned(tx, changedIds, until.untilTs);
  } else await removeMutes(tx, changedIds);
  const woken = changedIds.flatMap((id) => wakenBy(loaded.get(id), until, by.ts));
  await changeAlarms(tx, woken);
  const kind: AuditKind = until ? 'device-muted' : 'device-unmuted';
  const entries = changed.map(({ uuid }) => ({ kind, ...by, details: { deviceAuthUuid: uuid } }));
  await insertEntries(tx, accountId, entries);
}

/** If the new mute ends sooner than the old one, or at once, alarms that the old one postponed are due at that time. */
function wakenBy(
  device: LoadedDevice | undefined,
  until: Until | null,
  ts: number,
): StoredChange[] {
  const before = device?.mute;
  if (!before || (until && before.untilTs <= until.untilTs)) return [];
  const change: AlarmChangeKind = 'unsnoozed';
  return device.open.flatMap((alarm) => {
    const set = unquieted(alarm, until?.untilTs ?? ts, before.untilTs);
    return set ? [{ alarmId: alarm.alarmId, change, ts, set }] : [];
  });
}

/** Snoozes an event of a device. An earlier snooze is gone, but comes back if a job that replaced it is undone. */
async function saveSnooze(
  tx: Sql,
  deviceId: number,
  snooze: Quiet & { of: EventName; pId: string; ts: number; jobId: string | undefined },
): Promise<void> {
  const { of, pId, untilTs, reason, by, ts, jobId } = snooze;
  await tx.query(
    `insert into alarm_snooze as s
       (device_id, pu_id, st_id, ev_id, p_id, until_at, reason, snoozed_by, snoozed_at, job)
     values ($1, $2, $3, $4, $5, ms_to_timestamp($6), $7, $8, ms_to_timestamp($9), $10)
     on conflict (device_id, pu_id, st_id, ev_id) do update
       set p_id = excluded.p_id, until_at = excluded.until_at, reason = excluded.reason,
           snoozed_by = excluded.snoozed_by, snoozed_at = excluded.snoozed_at, job = excluded.job,
           replaced = case when excluded.job is null then null
                           -- Two alarms of an event: the second one finds the snooze of the first.
                           when s.job = excluded.job then s.replaced
                           else json_build_object('untilTs', ${ms('s.until_at')}, 'reason', s.reason,
                                                  'by', s.snoozed_by, 'ts', ${ms('s.snoozed_at')}) end`,
    [deviceId, of.puId, of.stId, of.evId, pId, untilTs, reason, by, ts, jobId ?? null],
  );
}

/**
 * Ends a snooze. To undo a job, only if it is that job's, and what it replaced comes back if it is not over. Returns
 * until when the event is snoozed then, ms; null: nothing is to be undone.
 */
async function endSnooze(
  tx: Sql,
  deviceId: number,
  of: EventName,
  { undoes, nowTs }: Undoing & { nowTs: number },
): Promise<{ untilTs: number | null } | null> {
  const which = `device_id = $1 and pu_id = $2 and st_id = $3 and ev_id = $4`;
  const name = [deviceId, of.puId, of.stId, of.evId];
  if (undoes !== undefined) {
    const { rows } = await tx.query<{ untilTs: number }>(
      `update alarm_snooze
          set until_at = ms_to_timestamp((replaced->>'untilTs')::bigint), reason = replaced->>'reason',
              snoozed_by = replaced->>'by', snoozed_at = ms_to_timestamp((replaced->>'ts')::bigint),
              job = null, replaced = null
        where ${which} and job = $5 and (replaced->>'untilTs')::bigint > $6
       returning until_at as "untilTs"`,
      [...name, undoes, nowTs],
    );
    if (rows[0]) return rows[0];
  }
  const { rowCount } = await tx.query(
    `delete from alarm_snooze where ${which} and ($5::uuid is null or job = $5)`,
    [...name, undoes ?? null],
  );
  return rowCount === 1 ? { untilTs: null } : null;
}

const ms = (column: string) => `trunc(extract(epoch from ${column}) * 1000)::bigint`;

/** Mutes all events of devices; replaces earlier mutes. */
async function saveMutes(
  tx: Sql,
  deviceIds: readonly number[],
  { untilTs, reason, by, ts }: Quiet & { ts: number },
): Promise<void> {
  await tx.query(
    `insert into device_mute (device_id, until_at, reason, muted_by, muted_at)
     select id, ms_to_timestamp($2), $3, $4, ms_to_timestamp($5)
       from unnest($1::bigint[]) as muted (id)
     on conflict (device_id) do update
       set until_at = excluded.until_at, reason = excluded.reason, muted_by = excluded.muted_by,
           muted_at = excluded.muted_at`,
    [deviceIds, untilTs, reason, by, ts],
  );
}

async function removeMutes(tx: Sql, deviceIds: readonly number[]): Promise<void> {
  await tx.query('delete from device_mute where device_id = any($1::bigint[])', [deviceIds]);
}

/** Whether the account's current profile of the device is still the one that the alarm belongs to. */
async function hasProfile(tx: Sql, deviceId: number, pId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from device_profile
      where device_id = $1 and profile_id::text = $2 and state = 'current'`,
    [deviceId, pId],
  );
  return rowCount === 1;
}

/** Suppresses notifications of the alarm's event until then: of this alarm and of later ones. Throws `not-found`. */
export function snoozeAlarm(deps: ActDeps, act: Act, alarmId: number, quiet: Until): Promise<void> {
  return actOnAlarm(deps, act, alarmId, snoozing(quiet));
}

const snoozing =
  ({ untilTs, reason, jobId }: Until & { jobId?: string }): Work =>
  async (held, { of, pId, open }) => {
    const quiet = { untilTs, reason };
    const { tx, ts, deviceId } = held;
    // An event of another profile opens no more alarms.
    if (!open && !(await hasProfile(tx, deviceId, pId))) return null;
    await saveSnooze(tx, deviceId, { ...quiet, of, pId, by: personOf(held.by), ts, jobId });
    const set = open && snoozed(open, quiet);
    if (open && set) {
      await changeAlarms(held.tx, [{ alarmId: open.alarmId, change: 'snoozed', ts, set }]);
    }
    return { kind: 'alarm-snoozed', ...(open && set ? { dropped: open.alarmId } : {}) };
  };

/** Notifications of the event resume; an open alarm that was not announced is announced at once. Throws `not-found`. */
export function unsnoozeAlarm(deps: ActDeps, act: Act, alarmId: number): Promise<void> {
  return actOnAlarm(deps, act, alarmId, unsnoozing({}));
}

const unsnoozing =
  ({ undoes }: Undoing): Work =>
  async (held, { of, open }) => {
    const { tx, ts, deviceId, device } = held;
    const snooze = device?.snoozes.find((one) => nameKey(one.of) === nameKey(of));
    const ended = snooze && (await endSnooze(tx, deviceId, of, { undoes, nowTs: ts }));
    if (!ended) return null;
    const { untilTs } = ended;
    const set = open && unquieted(open, untilTs ?? ts, snooze.untilTs);
    const change = untilTs === null ? 'unsnoozed' : 'snoozed';
    if (open) await changeAlarms(tx, [{ alarmId: open.alarmId, change, ts, set: set ?? {} }]);
    return { kind: 'alarm-unsnoozed' };
  };
