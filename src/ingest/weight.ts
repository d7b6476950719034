import type { Profile, Weight } from '../core/compile.ts';
import type { Place } from '../core/place.ts';
import { costs } from './budget.ts';
import type { DeviceContext } from './context.ts';

/**
 * What one of a device's measurements takes at most, in ordinary ones (`Budget`), before any firing. One
 * where that is not known: the device was not read yet, or does not evaluate here.
 */
export function costPerItem(context: DeviceContext | null): number {
  if (context?.current?.engine !== 'service' || !context.runtime) return 1;
  const { own, global } = weightsAt(context.current.profile, context.runtime);
  return 1 + ((own?.judging ?? 0) + (global?.judging ?? 0)) * costs.cause;
}

/** What it takes once, besides the items, to carry some of a device's messages: its evidence, or to read it. */
export function costOfDevice(context: DeviceContext | null): number {
  if (!context) return costs.reading;
  const { current, runtime } = context;
  return current?.engine === 'service' && runtime ? evidenceCost(current.profile, runtime) : 0;
}

/** What it takes at most to write down, or to read, the evidence of a device that stands there. */
export function evidenceCost(profile: Profile, place: Place): number {
  const { own, global } = weightsAt(profile, place);
  const causes = (own?.causes ?? 0) + (global?.causes ?? 0);
  const outcomes = (own?.outcomes ?? 0) + (global?.outcomes ?? 0);
  return causes * costs.evidence + outcomes * costs.outcome;
}

/** What that evidence takes at most while it is remembered, in bytes; measured. */
export function evidenceBytes(profile: Profile, place: Place): number {
  const { own, global } = weightsAt(profile, place);
  const causes = (own?.causes ?? 0) + (global?.causes ?? 0);
  const outcomes = (own?.outcomes ?? 0) + (global?.outcomes ?? 0);
  return causes * 200 + outcomes / 3;
}

function weightsAt(profile: Profile, place: Place): { own: Weight | null; global: Weight | null } {
  const purpose = profile.purposes.get(place.puId);
  const own = purpose?.states.get(place.stId)?.weight ?? null;
  return { own, global: purpose?.globalWeight ?? null };
}
