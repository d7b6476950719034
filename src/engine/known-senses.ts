import type { Sense } from '../contract/configuration.ts';

/** The senses of each device a profile is meant for. */
export type DeviceSenses = Sense[][];

/**
 * The same by sense: the range of each of them, and the longest `minInterval` of those that have one, in ms.
 * `tries`: how many ranges will be looked at yet.
 */
export type KnownSenses = {
  ranges: ReadonlyMap<string, Sense[]>;
  slowest: ReadonlyMap<string, number>;
  tries: number;
};

/** As many ranges are looked at for one profile: beyond it nothing is said to be out of range. */
const maxTries = 20_000;

/** By sense what its devices say of it. */
export function knownSenses(devices: DeviceSenses): KnownSenses {
  const ranges = new Map<string, Sense[]>();
  const slowest = new Map<string, number>();
  for (const senses of devices) {
    for (const sense of senses) {
      const known = ranges.get(sense.sId);
      if (known) known.push(sense);
      else ranges.set(sense.sId, [sense]);
      const { sId, minInterval = 0 } = sense;
      if (minInterval > (slowest.get(sId) ?? 0)) slowest.set(sId, minInterval);
    }
  }
  return { ranges, slowest, tries: maxTries };
}
