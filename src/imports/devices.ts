import type { Sense } from '../contract/configuration.ts';
import type { Sql } from '../db/sql.ts';
import type { ImportCandidate } from './candidate.ts';
import { listOwnDevices, listSenses, type Owner } from './queries.ts';

/** A device of the account with those of its senses that were asked for; an absent one is not configured. */
export type ImportDevice = { deviceId: number; senses: Map<string, Sense> };

export type Devices = {
  /** Looks up what the batch needs and is not known. */
  load(batch: readonly ImportCandidate[]): Promise<void>;
  /** Null: the account has no such device, or the key does not reach it. */
  get(uuid: string): ImportDevice | null;
  /** It was removed meanwhile. */
  forget(uuid: string): void;
};

/** A change of a configuration is known to an import within this time. */
const freshMs = 5_000;
/** Devices and senses that one import remembers: about 10 MB. */
const maxRemembered = 50_000;

type Known = ImportDevice & { asked: Set<string> };

/** Remembers the devices and senses of one import for a while: most lines are of those before them. */
export function createDevices(db: Sql, owner: Owner, nowMs: () => number): Devices {
  const known = new Map<string, Known | null>();
  let size = 0;
  let sinceMs = nowMs();

  async function loadDevices(uuids: Set<string>): Promise<void> {
    const unknown = [...uuids].filter((uuid) => !known.has(uuid));
    if (unknown.length === 0) return;
    for (const uuid of unknown) known.set(uuid, null);
    size += unknown.length;
    for (const { uuid, deviceId } of await listOwnDevices(db, owner, unknown))
      known.set(uuid, { deviceId, senses: new Map(), asked: new Set() });
  }

  async function loadSenses(batch: readonly ImportCandidate[]): Promise<void> {
    const sIds = new Set<string>();
    const devices = new Map<number, Known>();
    for (const { uuid, sId } of batch) {
      const device = known.get(uuid);
      if (!device || device.asked.has(sId)) continue;
      device.asked.add(sId);
      size += 1;
      sIds.add(sId);
      devices.set(device.deviceId, device);
    }
    if (devices.size === 0) return;
    for (const { deviceId, ...sense } of await listSenses(db, [...devices.keys()], [...sIds]))
      devices.get(deviceId)?.senses.set(sense.sId, sense);
  }

  return {
    async load(batch) {
      if (size > maxRemembered || nowMs() - sinceMs > freshMs) {
        known.clear();
        size = 0;
        sinceMs = nowMs();
      }
      await loadDevices(new Set(batch.map(({ uuid }) => uuid)));
      await loadSenses(batch);
    },
    get: (uuid) => known.get(uuid) ?? null,
    forget: (uuid) => void known.set(uuid, null),
  };
}
