import type { NewEvent } from '../core/event.ts';
import type { Sql } from '../db/database.ts';
import { countUnchanged, lockIngest, saveStates } from './queries.ts';
import type { Plan } from './plan.ts';
import type { MeasurementRow, ProfileChange, RejectionRow, Ring, Rows } from './rows.ts';

/** What other features write inside the transaction of a batch. */
export type Writers = {
  storeMeasurements: (tx: Sql, rows: MeasurementRow[]) => Promise<void>;
  /** Gives the events that were not there before. */
  recordEvents: (tx: Sql, events: NewEvent[]) => Promise<NewEvent[]>;
  keepRejections: (tx: Sql, rows: RejectionRow[]) => Promise<void>;
  settleProfiles: (tx: Sql, changes: ProfileChange[]) => Promise<void>;
  replaceConfigurations: (tx: Sql, rows: Rows['configurations']) => Promise<void>;
  notify: (tx: Sql, rings: Ring[]) => Promise<void>;
};

/** A device changed since it was read: the plan is void, and is made again from what is there now. */
export class StaleContext extends Error {}

/** Writes a plan within one transaction; gives the events that are new. Throws `StaleContext`. */
export async function write(tx: Sql, plan: Plan, writers: Writers): Promise<NewEvent[]> {
  const { rows, changed, unchanged } = plan;
  await lockIngest(tx);
  if (changed.length > 0 && (await saveStates(tx, changed)) !== changed.length) {
    throw new StaleContext();
  }
  if (unchanged.length > 0 && (await countUnchanged(tx, unchanged)) !== unchanged.length) {
    throw new StaleContext();
  }
  if (rows.configurations.length > 0) await writers.replaceConfigurations(tx, rows.configurations);
  if (rows.profiles.length > 0) await writers.settleProfiles(tx, rows.profiles);
  if (rows.measurements.length > 0) await writers.storeMeasurements(tx, rows.measurements);
  if (rows.rejections.length > 0) await writers.keepRejections(tx, rows.rejections);
  const recorded = rows.events.length > 0 ? await writers.recordEvents(tx, rows.events) : [];
  const rings = ringing(rows.rings, recorded);
  if (rings.length > 0) await writers.notify(tx, rings);
  return recorded;
}

/** A reported event that was delivered before has rung before. */
function ringing(rings: Ring[], recorded: NewEvent[]): Ring[] {
  const nameOf = (deviceId: number, key: string, ts: number) => `${deviceId} ${ts} ${key}`;
  const fresh = new Set(recorded.map((e) => nameOf(e.deviceId, e.key, e.event.ts)));
  return rings.filter(
    ({ key, device, event }) =>
      key === undefined || fresh.has(nameOf(device.deviceId, key, event.ts)),
  );
}
