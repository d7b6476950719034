import { senseEventOf } from './build-event.ts';
import { deviceEventOf, engineOf } from './device-event.ts';
import { useUp } from './collect-evidence.ts';
import type { LiveEvent } from './compile-event.ts';
import type { MoveTarget } from './move-target.ts';
import type { Profile } from './compile.ts';
import type { LiveEvidence } from './live-evidence.ts';
import type { Evaluated } from './outcome.ts';
import { hasPlace } from './runtime.ts';
import type { EventEvidence } from './runtime.ts';

/** What a cause of an event that fires takes, beside one that judges and stays as it is. */
export const costOfFiring = 5;

/**
 * `ts`: the firing's. `nowTs`: when it fires by the service's clock: as the measurement arrives, or as the tick is due; by
 * a silence's tick when that was complete. `ageMs`: see `Firing`. `isGiven`: whether the firing is among the outcome's.
 */
type At = { ts: number; nowTs: number; ageMs: number; isGiven: boolean };

/** An event fires: what it has collected is used up. */
export function fire(
  { pId }: Profile,
  live: LiveEvidence,
  event: LiveEvent,
  evidence: EventEvidence,
  { ts, nowTs, ageMs, isGiven }: At,
  outcome: Evaluated,
): void {
  if (isGiven) {
    const found = senseEventOf({ pId, puId: live.place.puId, event, ts }, evidence, nowTs);
    const { name, record, actions, tells } = event;
    const isFirst = !evidence.isInEpisode;
    outcome.firings.push({ event: found, name, record, actions, tells, isFirst, ageMs });
  }
  live.draftOf(event).set(event.index, useUp(event, evidence));
}

/** Where an event that fired moves the device, if anywhere: to be entered. */
export function leadOn(
  profile: Profile,
  { place }: LiveEvidence,
  event: LiveEvent,
  ts: number,
  outcome: Evaluated,
): MoveTarget | null {
  const { target } = event;
  if (!target || !hasPlace(profile, target.place)) return null;
  const { place: to } = target;
  const engine = engineOf({ pId: profile.pId, puId: place.puId, event, ts });
  const moved = deviceEventOf(engine, place, to);
  outcome.transition = moved ? { to, event: moved } : { to };
  return target;
}
