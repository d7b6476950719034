import { warning, type Warning, type WarningCode } from '../contract/warnings.ts';
import { compileProfile } from './compile.ts';
import type { LiveEvent } from './compile-event.ts';
import type { Profile } from './compile.ts';
import { whyUnfireable } from './unfireable.ts';
import { knownSenses } from './known-senses.ts';
import type { DeviceSenses } from './known-senses.ts';
import { purposesPath } from './check-profile.ts';
import type { Purpose, PurposePath } from '../contract/purpose.ts';
import { placeKey, reach } from './reachability.ts';
import { selfMoveOf } from './self-moving.ts';
import { warnOfTime } from './warn-of-time.ts';

/** What there is to say of a part of a profile. `size`: what it took to find out, in microseconds or so. */
export type WarnedPart = { size: number; warnings: Warning[] };

/**
 * What is allowed but hardly meant: what nothing leads to, events that can never fire, two states
 * that send a device back and forth by themselves, members without effect. For one purpose on its own pass it alone with
 * `() => ''` as `pathOf`. `devices`: the senses of each chosen device, where they are known.
 */
export function listWarnings(
  purposes: Purpose[],
  devices?: DeviceSenses,
  pathOf: PurposePath = purposesPath,
): Warning[] {
  return [...warnInParts(purposes, devices, pathOf)].flatMap(({ warnings }) => warnings);
}

/** The same part by part, so that whoever calls may stop at enough, or do something else in between. */
export function* warnInParts(
  purposes: Purpose[],
  devices?: DeviceSenses,
  pathOf: PurposePath = purposesPath,
): Generator<WarnedPart> {
  const profile = compileProfile('', purposes);
  const senses = devices && knownSenses(devices);
  yield { size: 1_000_000, warnings: [] };
  const reached = reach(profile);
  for (const [index, purpose] of purposes.entries()) {
    const path = pathOf(index);
    if (!reached.purposes.has(purpose.puId)) {
      yield one('unreachable-purpose', path, 'no event of the profile leads to this purpose');
    }
    for (const [s, { stId, isGlobal, events }] of purpose.states.entries()) {
      const place = { puId: purpose.puId, stId };
      const at = `${path}/states/${s}`;
      if (!isGlobal && !reached.states.has(placeKey(place))) {
        yield one('unreachable-state', at, 'nothing leads to this state');
      }
      for (const [e, event] of eventsAt(profile, place).entries()) {
        const inEvent = `${at}/events/${e}`;
        for (const { size, reason } of whyUnfireable(event, senses)) {
          if (reason === null) yield { size, warnings: [] };
          else {
            const what = `this event can never fire: ${reason.what}`;
            yield one(reason.code, inEvent, what, size);
          }
        }
        for (const what of swings(profile, place, event))
          yield one('back-and-forth', inEvent, what);
        const given = events[e];
        if (given) yield { size: 1, warnings: warnOfTime(given, event, inEvent, senses) };
      }
    }
  }
}

function one(code: WarningCode, path: string, what: string, size = 1): WarnedPart {
  return { size, warnings: [warning(code, path, what)] };
}

function eventsAt(profile: Profile, { puId, stId }: { puId: number; stId: number }): LiveEvent[] {
  return profile.purposes.get(puId)?.states.get(stId)?.events ?? [];
}

/** Said once a pair: at the event of the state that comes first. */
function swings(
  profile: Profile,
  from: { puId: number; stId: number },
  event: LiveEvent,
): string[] {
  const move = selfMoveOf(event);
  if (!move || placeKey(move.to) <= placeKey(from)) return [];
  const back = eventsAt(profile, move.to).map(selfMoveOf);
  // One on silence and one on any measurement is how a silent sense is watched.
  if (!back.some((it) => it?.on === move.on && placeKey(it.to) === placeKey(from))) return [];
  const when = move.on === 'any' ? 'on any measurement' : 'while nothing is measured';
  return [`this state and state ${move.to.stId} send a device back and forth ${when}`];
}
