import type { DoneBy } from '../audit/entry.ts';
import { insertEntries } from '../audit/audit.ts';
import type { AuditKind } from '../audit/schema.ts';
import type { AlarmChangeKind } from '../contract/alarm.ts';
import type { Sql } from '../db/sql.ts';
import { personOf, type ActDeps, type Target } from './act-on.ts';
import type { Quiet } from './alarm.ts';
import { changeAlarms, type StoredChange } from './change-alarms.ts';
import { loadDevices, type LoadedDevice } from './load.ts';
import { removeMutes, saveMutes } from './quiet-queries.ts';
import { unquieted } from './rules/person.ts';

type Until = Pick<Quiet, 'untilTs' | 'reason'>;

/** Devices of one account, and who mutes them. */
export type Muted = {
  accountId: number;
  by: DoneBy;
  devices: readonly { deviceId: number; uuid: string }[];
};

/** Nobody is told of any event of the device until then. */
export function muteDevice(deps: ActDeps, target: Target, until: Until): Promise<void> {
  return change(deps, target, until);
}

/** People are told of the device's events again: of what is open and was not told at once. */
export function unmuteDevice(deps: ActDeps, target: Target): Promise<void> {
  return change(deps, target, null);
}

async function change({ db, bus, telling }: ActDeps, target: Target, until: Until | null) {
  const { accountId, deviceId, uuid, by } = target;
  const devices = [{ deviceId, uuid }];
  await db.transaction((tx) => muteWithin(tx, telling, { accountId, by, devices }, until));
  bus.publish('events', { accountIds: [accountId], deviceIds: [deviceId] });
}

/**
 * The same of many within the caller's transaction: until then, or (null) not any more. A statement is for all of
 * them, however many there are. Streams are not told.
 */
export async function muteWithin(
  tx: Sql,
  telling: Pick<ActDeps['telling'], 'putOffPlanned'>,
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
    await telling.putOffPlanned(tx, changedIds, until.untilTs);
  } else await removeMutes(tx, changedIds);
  const woken = changedIds.flatMap((id) => wakenBy(loaded.get(id), until, by.ts));
  await changeAlarms(tx, woken);
  const kind: AuditKind = until ? 'device-muted' : 'device-unmuted';
  const entries = changed.map(({ uuid }) => ({ kind, ...by, details: { deviceAuthUuid: uuid } }));
  await insertEntries(tx, accountId, entries);
}

/** The timer of what a mute put off looks when the new one ends, where that is sooner, instead of at the mute's end. */
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
