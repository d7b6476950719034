import type { Problem } from '../errors.ts';
import { compileProfile } from './compile.ts';
import type { LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import { whyNever } from './never.ts';
import type { DeviceSenses } from './never.ts';
import { purposesPath } from './profile.ts';
import type { PurposePath } from './profile.ts';
import type { Purpose } from './purpose.ts';
import { placeKey, reach } from './reach.ts';

/**
 * What is allowed but hardly meant: what nothing leads to, events that can never fire, two states
 * that send a device back and forth on any measurement. For one purpose on its own pass it alone with
 * `() => ''` as `pathOf`. `devices`: the senses of each chosen device, where they are known.
 */
export function remarkProfile(
  purposes: Purpose[],
  devices?: DeviceSenses,
  pathOf: PurposePath = purposesPath,
): Problem[] {
  const profile = compileProfile('', purposes);
  const reached = reach(profile);
  return purposes.flatMap((purpose, index) => {
    const path = pathOf(index);
    const remarks: Problem[] = [];
    if (!reached.purposes.has(purpose.puId)) {
      remarks.push({ path, message: 'no event of the profile leads to this purpose' });
    }
    for (const [s, { stId, isGlobal }] of purpose.states.entries()) {
      const place = { puId: purpose.puId, stId };
      const at = `${path}/states/${s}`;
      if (!isGlobal && !reached.states.has(placeKey(place))) {
        remarks.push({ path: at, message: 'nothing leads to this state' });
      }
      for (const [e, event] of eventsAt(profile, place).entries()) {
        const messages = [...neverFires(event, devices), ...swings(profile, place, event)];
        remarks.push(...messages.map((message) => ({ path: `${at}/events/${e}`, message })));
      }
    }
    return remarks;
  });
}

function eventsAt(profile: Profile, { puId, stId }: { puId: number; stId: number }): LiveEvent[] {
  return profile.purposes.get(puId)?.states.get(stId)?.events ?? [];
}

function neverFires(event: LiveEvent, devices?: DeviceSenses): string[] {
  return whyNever(event, devices).map((reason) => `this event can never fire: ${reason}`);
}

/** Said once a pair: at the event of the state that comes first. */
function swings(
  profile: Profile,
  from: { puId: number; stId: number },
  event: LiveEvent,
): string[] {
  const to = movesOnAny(event);
  if (!to || placeKey(to) <= placeKey(from)) return [];
  const back = eventsAt(profile, to).map(movesOnAny);
  if (!back.some((place) => place && placeKey(place) === placeKey(from))) return [];
  return [`this state and state ${to.stId} send a device back and forth on any measurement`];
}

function movesOnAny({ causes, ringsAlways, target }: LiveEvent) {
  const onAny = causes.length > 0 && ringsAlways && !causes.some((cause) => cause.negate);
  return onAny ? (target?.place ?? null) : null;
}
