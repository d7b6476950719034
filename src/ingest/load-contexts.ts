import { setImmediate } from 'node:timers/promises';
import { compileProfile, numbered } from '../core/compile.ts';
import type { Profile } from '../core/compile.ts';
import { readRuntime } from '../core/read-runtime.ts';
import { sensesOf } from '../core/senses.ts';
import type { Newest, Seen } from '../core/seen.ts';
import type { Sql } from '../db/sql.ts';
import { Budget } from './budget.ts';
import type { DeviceContext, Reported } from './context.ts';
import type { Lane } from './lanes.ts';
import { Pages } from './pages.ts';
import { claimDevices, listDevices, listProfiles } from './queries.ts';
import type { DeviceRow } from './queries.ts';
import { evidenceCost } from './weight.ts';

const maxCompiledProfiles = 1_000;

/** How much of what was read is taken in at a stretch: `Budget`. */
const readAtOnce = 1_000;

const none: ReadonlyMap<string, number> = new Map();

/** The newest measurement of each of these senses, by device. */
export type FindNewest = (
  tx: Sql,
  wanted: { deviceId: number; sId: string }[],
) => Promise<ReadonlyMap<number, Seen>>;

export type ContextLoader = (tx: Sql, lanes: Lane[]) => Promise<ReadonlyMap<number, DeviceContext>>;

/**
 * Reads what is to be known of devices, and makes those with a profile the transaction's own: another
 * process that has one of their messages under way is waited for, so that what is the newest in the
 * history is the newest. A device that was removed has none.
 */
export function createContextLoader(findNewest: FindNewest): ContextLoader {
  // A profile never changes once it is installed, and many devices share one.
  const compiled = new Map<string, Profile>();

  return async (tx, lanes) => {
    const deviceIds = lanes.map(({ device }) => device.deviceId);
    const [, rows] = await Promise.all([claimDevices(tx, deviceIds), listDevices(tx, deviceIds)]);
    const profiles = await loadProfiles(tx, rows);
    const contexts = await toContexts(rows, profiles);
    const newest = await findNewest(tx, contexts.flatMap(wantedOf));
    return new Map(
      contexts.map((context) => {
        const { deviceId } = context.device;
        return [deviceId, { ...context, seen: pagesOf(context, newest.get(deviceId) ?? {}) }];
      }),
    );
  };

  /** Those that the devices have: taken along at once, for while others are read they may be dropped here. */
  async function loadProfiles(tx: Sql, rows: DeviceRow[]): Promise<Map<string, Profile>> {
    const profiles = new Map<string, Profile>();
    const missing = new Set<string>();
    for (const id of rows.flatMap((row) => [row.current_profile, row.pending_profile])) {
      if (id === null) continue;
      const profile = compiled.get(id);
      if (profile) profiles.set(id, profile);
      else missing.add(id);
    }
    if (missing.size === 0) return profiles;
    for (const { id, purposes } of await listProfiles(tx, [...missing])) {
      const profile = compileProfile(id, purposes);
      profiles.set(id, profile);
      compiled.set(id, profile);
    }
    while (compiled.size > maxCompiledProfiles) compiled.delete(compiled.keys().next().value ?? '');
    return profiles;
  }
}

/** Returns to the event loop now and then: evidence can be long, and there can be many devices. */
async function toContexts(
  rows: DeviceRow[],
  profiles: Map<string, Profile>,
): Promise<DeviceContext[]> {
  const contexts: DeviceContext[] = [];
  let budget = new Budget(readAtOnce);
  for (const row of rows) {
    if (budget.isSpent) {
      await setImmediate();
      budget = new Budget(readAtOnce);
    }
    const context = toContext(row, profiles);
    const { current, runtime } = context;
    budget.spend(1 + (current && runtime ? evidenceCost(current.profile, runtime) : 0));
    contexts.push(context);
  }
  return contexts;
}

function toContext(row: DeviceRow, profiles: Map<string, Profile>): DeviceContext {
  const current = row.current_profile ? profiles.get(row.current_profile) : undefined;
  const pending = row.pending_profile ? profiles.get(row.pending_profile) : undefined;
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
    runtime: current && row.runtime ? readRuntime(current, row.runtime) : null,
    watched: watchedBy(current, pending),
    seen: Pages.of<Newest>([]),
    lately: null,
  };
}

function watchedBy(current?: Profile, pending?: Profile): ReadonlyMap<string, number> {
  if (!current || !pending) return (current ?? pending)?.senses ?? none;
  const both = new Set([...current.senses.keys(), ...pending.senses.keys()]);
  return numbered(both);
}

function pagesOf({ watched }: DeviceContext, newest: Seen): Pages<Newest> {
  const senses = [...watched.keys()];
  return Pages.of(senses.map((sId) => (Object.hasOwn(newest, sId) ? newest[sId] : undefined)));
}

function wantedOf({ device: { deviceId }, watched }: DeviceContext) {
  return [...watched.keys()].map((sId) => ({ deviceId, sId }));
}

function toReported(row: DeviceRow): Reported | null {
  const { reported_at: ts, reported_pu_id: puId, reported_st_id: stId } = row;
  return ts === null || puId === null || stId === null ? null : { ts, puId, stId };
}
