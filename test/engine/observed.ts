import type { Evaluated, Firing, Transition } from '../../src/engine/compile.ts';
import type { ReferenceArrival } from './reference/arrival.ts';
import type { Led, Moves } from './vector.ts';

/** Whether the outcome has any effect. */
export function isSomething({ firings, ended, transition }: Evaluated): boolean {
  return firings.length > 0 || ended.length > 0 || transition !== undefined;
}

/** Adds the newest stored value of silent senses, which an engine does not know. */
export function withSilent(outcome: Evaluated, arrival: ReferenceArrival): Evaluated {
  const firings = outcome.firings.map((firing) => {
    const { event } = firing;
    const rest = [...event.cause.senses];
    const senses = (event.why ?? []).flatMap(({ sId, silentMs }) => {
      if (silentMs === undefined) return rest.splice(0, 1);
      const newest = arrival.newestOf(sId);
      if (!newest) return [];
      const { val, ts } = newest;
      return typeof val === 'number' ? [{ sId, val, ts }] : [{ sId, val: 0, ts, ...val }];
    });
    return { ...firing, event: { ...event, cause: { ...event.cause, senses } } };
  });
  return { ...outcome, firings };
}

/** The members of a cause's explanation that are expected. */
function pick<Asked extends { sId: string }>(found: object, asked: Asked): Asked {
  return Object.fromEntries(Object.entries(found).filter(([name]) => name in asked)) as Asked;
}

/** Ticks that had an effect. */
export function observeTicks(ticks: readonly Evaluated[], expected: Led[] = []): Led[] {
  return ticks
    .filter((outcome) => isSomething(outcome))
    .map((outcome, index) => observe(outcome, expected[index]));
}

/** An outcome in a vector's form, with those optional members that are expected; all of them without `expected`. */
export function observe({ firings, transition, ended }: Evaluated, expected?: Led): Led {
  const shown = textsOf(firings);
  const fires = firings.map((firing, index) => {
    const { event, record, actions, tells, isFirst, ageMs, began } = firing;
    const { puId, stId, evId } = event.cause.engine;
    // A notice of a move notifies if the device came from another state. The move may be another event's.
    const moves = Object.keys(actions.engine ?? {}).length > 0;
    const isNotice = tells === 'notice' && !(moves && transition && !transition.event);
    const ring = isNotice || (tells === 'alarm' && isFirst);
    const all = { record, ring, first: isFirst, ts: event.ts, ageMs, began };
    const asked = expected?.fires[index] ?? all;
    const told = Object.entries(all).filter(([name]) => name in asked);
    const why = expected?.fires[index]?.why?.map((one, at) => pick(event.why?.[at] ?? {}, one));
    const { senses } = event.cause;
    return { puId, stId, evId, ...Object.fromEntries(told), ...(why && { why }), senses };
  });
  const asked = {
    ...((expected ? expected.ended : ended.length > 0) && { ended }),
    ...((expected ? expected.shows : shown.length > 0) && { shows: shown }),
  };
  if (!transition) return { fires, ...asked };
  return { fires, ...asked, moves: observeMove(transition, expected?.moves) };
}

/** The move, with its event's identifiers if they are expected. */
export function observeMove({ to, event }: Transition, expected?: Moves | null): Moves {
  if (!event) return { puId: to.puId, stId: to.stId, event: null };
  const { cause, oldValue, newValue } = event;
  const { puId, stId, evId, ts } = cause.engine;
  const changed = { event: event.event, oldValue, newValue };
  const isAsked = !expected || expected.event?.engine !== undefined;
  const named = isAsked ? { ...changed, engine: { puId, stId, evId, ts } } : changed;
  return { puId: to.puId, stId: to.stId, event: named };
}

/** The texts sent to the device's display, in order. */
function textsOf(firings: readonly Firing[]): string[] {
  return firings.flatMap(({ actions }) => actions.display?.showText ?? []);
}
