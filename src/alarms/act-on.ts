import { insertEntry } from '../audit/audit.ts';
import type { DoneBy } from '../audit/entry.ts';
import type { AuditKind } from '../audit/schema.ts';
import type { Bus } from '../bus/bus.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { nameKey, type Alarm } from './alarm.ts';
import { loadDevices, type LoadedDevice } from './load.ts';
import type { PutOffPlanned, Telling } from './ports.ts';
import { getAlarmDevice } from './queries.ts';

export type ActDeps = {
  db: Database;
  bus: Bus;
  telling: Telling & { putOffPlanned: PutOffPlanned };
};

/** Whose alarm or device it is, and who does something with it. `within`: only with devices of these labels; null: any. */
export type Act = { accountId: number; within: readonly string[] | null; by: DoneBy };

/** The device that it is about. */
export type Target = Act & { deviceId: number; uuid: string };

/** A device with its alarms, read and kept from others. */
export type HeldDevice = Target & {
  tx: Sql;
  device: LoadedDevice | undefined;
  ts: number;
};

/** As which it is written down who did it. */
export const personOf = ({ actor }: DoneBy): string => actor.sessionId ?? actor.by;

export type OfAlarm = {
  of: Alarm['of'];
  pId: string;
  /** The alarm itself, where it is open, and the one that is open of its event. */
  own: Alarm | null;
  open: Alarm | null;
};

/** Does something with an alarm of a device. Throws `not-found`. */
export async function actOnAlarm(
  deps: ActDeps,
  act: Act,
  alarmId: number,
  work: (held: HeldDevice, alarm: OfAlarm) => Promise<AuditKind | null>,
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
  work: (held: HeldDevice) => Promise<AuditKind | null>,
  details: { alarmId: number },
): Promise<void> {
  const { accountId, deviceId, uuid, by } = target;
  await db.transaction(async (tx) => {
    const device = (await loadDevices(tx, [deviceId])).get(deviceId);
    const kind = await work({ ...target, tx, device, ts: by.ts });
    if (!kind) return;
    const entry = { kind, ...by, details: { ...details, deviceAuthUuid: uuid } };
    await insertEntry(tx, accountId, entry);
  });
  bus.publish('events', { accountIds: [accountId], deviceIds: [deviceId] });
}
