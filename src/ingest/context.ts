import type { Sense } from '../core/configuration.ts';
import type { Profile } from '../core/compile.ts';
import type { Place } from '../core/place.ts';
import type { Runtime } from '../core/runtime.ts';
import type { Newest } from '../core/seen.ts';
import type { DeviceIdentity } from '../core/uplink.ts';
import type { Lately } from './lately.ts';
import type { Pages } from './pages.ts';

/** The newest state that the device itself reported since its profile became current. */
export type Reported = Place & { ts: number };

export type InstalledProfile = { profile: Profile; engine: 'service' | 'device' };

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
  current: InstalledProfile | null;
  /** Handed over, or to be, and not answered yet. */
  pending: Profile | null;
  runtime: Runtime | null;
  /** The senses that one of its profiles reads, numbered, and by number the newest of each in the history. */
  watched: ReadonlyMap<string, number>;
  seen: Pages<Newest>;
  /** Its rejections of the last minute that had any; null where this process has seen none. */
  lately: Lately | null;
};
