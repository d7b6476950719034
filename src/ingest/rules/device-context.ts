import type { Sense } from '../../contract/configuration.ts';
import type { Profile } from '../../engine/compile.ts';
import type { Place } from '../../contract/place.ts';
import type { Runtime } from '../../engine/runtime.ts';
import type { Newest } from '../../engine/last-seen.ts';
import type { DeviceIdentity } from '../../contract/uplink.ts';
import type { RecentRejections } from './recent-rejections.ts';
import type { Pages } from './pages.ts';
import type { Remarked, SenseClock } from './sense-clock.ts';

/** The newest state that the device itself reported since its profile became current. */
export type Reported = Place & { ts: number };

type RunningProfile = { profile: Profile; engine: 'service' | 'device' };

/** When a tick of this runtime is due at the earliest, ms, however its connector listens; null: nothing waits. */
export type EarliestDue = {
  purposes: Profile['purposes'];
  runtime: Runtime;
  ts: number | null;
};

/**
 * What is stored of a device's evidence: the whole of it as of some version of the device's row, and the
 * measurements that were evaluated since (`evidence_log`), which evaluated again give what there is now.
 */
export type EvidenceLog = {
  /** The version with which the whole was written; null where it is to be written next. */
  base: number | null;
  /** Characters of what was added to it. */
  added: number;
  /** What was evaluated since this version of the row, encoded; is stored with the row's next one. */
  version: number;
  pending: string[];
  /** The evidence that all of it comes to: any other one is not of this log. */
  runtime: Runtime;
  /** Whether there may be rows of the device's. */
  hasRows: boolean;
  /** Whether the evidence may become so long that to write it each time costs more. */
  isLong: boolean;
};

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
  /** When that was installed, ms; null where there is none. */
  pendingTs: number | null;
  runtime: Runtime | null;
  /** How its evidence is stored, where that is long; null: always as a whole. */
  evidenceLog: EvidenceLog | null;
  /** When it is due to be evaluated without a message, as its row in `device_due` says; null: it has none. */
  dueTs: number | null;
  /** When a tick of `runtime` is due at the earliest, where that was looked at. */
  earliestDue: EarliestDue | null;
  /** The senses that one of its profiles reads, numbered, and by number the newest of each: its clock. */
  watched: ReadonlyMap<string, number>;
  seen: Pages<Newest>;
  /** By sense, where the history's newest is not all there is to know of its clock; null: of none. */
  clocks: ReadonlyMap<string, SenseClock> | null;
  remarked: Remarked | null;
  /** Senses of alarms that are told with the next fresh measurement: these, and maybe more; null: none. */
  waitingSenses: ReadonlySet<string> | null;
  /** Its rejections of the last minute that had any; null where this process has seen none. */
  recentRejections: RecentRejections | null;
};
