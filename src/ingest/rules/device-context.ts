import type { Sense } from '../../contract/configuration.ts';
import type { Profile } from '../../engine/compile.ts';
import type { Place } from '../../contract/place.ts';
import type { Runtime } from '../../engine/runtime.ts';
import type { Newest } from '../../engine/last-seen.ts';
import type { DeviceIdentity } from '../../contract/uplink.ts';
import type { RecentRejections } from './recent-rejections.ts';
import type { EvidenceLog } from './evidence-log.ts';
import type { Pages } from './pages.ts';

/** The newest state that the device itself reported since its profile became current. */
export type Reported = Place & { ts: number };

export type RunningProfile = { profile: Profile; engine: 'service' | 'device' };

/**
 * All that the evaluation of a device's message depends on, as of `version` of its row. Immutable:
 * a message gives a new one, which takes the place of the old when its transaction is being committed.
 */
export type DeviceContext = {
  device: DeviceIdentity;
  version: number;
  senses: ReadonlyMap<string, Sense>;
  place: Place;
  /** When the device came to its place, ms. */
  placeTs: number;
  reported: Reported | null;
  answersProfiles: boolean;
  current: RunningProfile | null;
  /** Handed over, or to be, and not answered yet. */
  pending: Profile | null;
  runtime: Runtime | null;
  /** How its evidence is stored, where that is long; null: always as a whole. */
  evidenceLog: EvidenceLog | null;
  /** The senses that one of its profiles reads, numbered, and by number the newest of each in the history. */
  watched: ReadonlyMap<string, number>;
  seen: Pages<Newest>;
  /** Its rejections of the last minute that had any; null where this process has seen none. */
  recentRejections: RecentRejections | null;
};
