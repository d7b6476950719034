import { compileProfile } from '../core/compile.ts';
import type { Profile } from '../core/compile.ts';
import { sensesOf } from '../core/senses.ts';
import type { Sql } from '../db/database.ts';
import type { DeviceContext, Reported } from './context.ts';
import type { Lane, Work } from './lanes.ts';
import { listDevices, listProfiles } from './queries.ts';
import type { DeviceRow } from './queries.ts';

const maxCompiledProfiles = 1_000;

export type ContextLoader = (db: Sql, batch: Work[]) => Promise<ReadonlySet<Lane>>;

/** Reads what a batch needs of its devices and is not known; gives the lanes of removed devices. */
export function createContextLoader(): ContextLoader {
  // A profile never changes once it is installed, and many devices share one.
  const compiled = new Map<string, Profile>();

  return async (db, batch) => {
    const unknown = batch.filter(({ lane }) => lane.context === null);
    const removed = new Set<Lane>();
    if (unknown.length === 0) return removed;
    const rows = await listDevices(
      db,
      unknown.map(({ lane }) => lane.device.deviceId),
    );
    await compileMissing(db, rows);
    const byId = new Map(rows.map((row) => [row.device_id, row]));
    for (const { lane } of unknown) {
      const row = byId.get(lane.device.deviceId);
      if (row) lane.context = toContext(row, compiled);
      else removed.add(lane);
    }
    while (compiled.size > maxCompiledProfiles) compiled.delete(compiled.keys().next().value ?? '');
    return removed;
  };

  async function compileMissing(db: Sql, rows: DeviceRow[]): Promise<void> {
    const wanted = rows.flatMap((row) => [row.current_profile, row.pending_profile]);
    const missing = new Set(wanted.filter((id) => id !== null && !compiled.has(id)) as string[]);
    if (missing.size === 0) return;
    for (const { id, purposes } of await listProfiles(db, [...missing])) {
      compiled.set(id, compileProfile(id, purposes));
    }
  }
}

function toContext(row: DeviceRow, compiled: Map<string, Profile>): DeviceContext {
  const current = row.current_profile ? compiled.get(row.current_profile) : undefined;
  const pending = row.pending_profile ? compiled.get(row.pending_profile) : undefined;
  return {
    device: { deviceId: row.device_id, uuid: row.uuid, accountId: row.account_id },
    version: row.version,
    senses: sensesOf(row.configuration),
    place: { puId: row.pu_id, stId: row.st_id },
    placeTs: row.state_at,
    reported: toReported(row),
    answersProfiles: row.answers_profiles,
    current: current ? { profile: current, engine: row.engine ?? 'service' } : null,
    pending: pending ?? null,
    runtime: row.runtime,
  };
}

function toReported(row: DeviceRow): Reported | null {
  const { reported_at: ts, reported_pu_id: puId, reported_st_id: stId } = row;
  return ts === null || puId === null || stId === null ? null : { ts, puId, stId };
}
