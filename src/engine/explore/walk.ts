import { asksForMove } from '../../contract/actions.ts';
import type { EventName } from '../../contract/event.ts';
import type { Place } from '../../contract/values.ts';
import type { WitnessStep } from '../../contract/warnings.ts';
import type { Evaluated, LiveEvent, Profile } from '../compile.ts';
import { Evaluator } from '../evaluator.ts';
import { type Runtime, startRuntime } from '../runtime.ts';
import { placeKey } from './impossible.ts';

/** An open alarm ends with its episode, or when the device leaves the place to which its firing moved it. */
type OpenAlarm = { event: LiveEvent; until: Place | null };

/** A device after some steps, the last of which led here `from` another one. */
export type Node = {
  runtime: Runtime;
  nowTs: number;
  alarms: readonly OpenAlarm[];
  from: Node | null;
  step: WitnessStep | null;
};

/** What can be shown by a stream, as text. */
export const goal = {
  fires: ({ puId, stId, evId }: EventName) => `fires ${puId}/${stId}/${evId}`,
  ends: ({ puId, stId, evId }: EventName) => `ends ${puId}/${stId}/${evId}`,
  tells: ({ puId, stId, evId }: EventName) => `tells ${puId}/${stId}/${evId}`,
  reaches: (place: Place) => `reaches ${placeKey(place)}`,
  leaves: (place: Place) => `leaves ${placeKey(place)}`,
};

/** A device whose profile has just become current, at time 0. */
export function startNode(profile: Profile): Node {
  return { runtime: startRuntime(profile, 0), nowTs: 0, alarms: [], from: null, step: null };
}

/** The steps that lead to a node. */
export function stepsTo(node: Node): WitnessStep[] {
  const steps: WitnessStep[] = [];
  for (let at: Node | null = node; at; at = at.from) if (at.step) steps.push(at.step);
  return steps.toReversed();
}

/** When the next tick is due; null if nothing waits. */
export function dueTsOf(profile: Profile, { runtime }: Node): number | null {
  return profile.isTimed ? new Evaluator(profile, runtime).nextDueTs() : null;
}

/** What a step led to: the device after it, what it showed, and what it cost; `node` is null if too much happened. */
type Walked = { node: Node | null; shown: string[]; effort: number };

/** States may move a device back and forth while time passes. A step with more moves than these is not tried. */
const mostMoves = 32;
/** What a step costs beside what the engine does for it, in causes that judge a measurement. */
const effortOfEach = 100;

/** How many causes are live. */
const weightAt = ({ purposes }: Profile, { puId, stId }: Place): number =>
  purposes.get(puId)?.states.get(stId)?.weight.causes ?? 0;

/** Does a step. Measurements that repeat end with the first that fires, or ends, something. */
export function walk(profile: Profile, from: Node, step: WitnessStep): Walked {
  const { sId, val, afterMs, times = 1 } = step;
  let { runtime, nowTs } = from;
  const effortOfStep = effortOfEach + 4 * weightAt(profile, runtime);
  let count = 0;
  let effort = 0;
  const outcomes: Evaluated[] = [];
  while (count < times && outcomes.length === 0) {
    count += 1;
    nowTs += afterMs;
    const evaluator = new Evaluator(profile, runtime);
    const moment = { t: nowTs, arrivedTs: nowTs };
    const happened = evaluator.ticksUntil(nowTs, mostMoves).slice();
    if (happened.length >= mostMoves)
      return { node: null, shown: [], effort: effort + evaluator.cost };
    if (sId !== undefined && val !== undefined) {
      happened.push(...evaluator.ticksForcedBy(sId, moment));
      happened.push(evaluator.measure({ sId, val, ts: nowTs }, moment, true));
    }
    runtime = evaluator.end();
    effort += effortOfStep + evaluator.cost;
    for (const outcome of happened)
      if (outcome.firings.length > 0 || outcome.ended.length > 0) outcomes.push(outcome);
  }
  const done =
    sId === undefined || val === undefined
      ? { afterMs }
      : { afterMs, sId, val, ...(count > 1 && { times: count }) };
  const shown: string[] = [];
  let { alarms } = from;
  let place: Place = from.runtime;
  for (const outcome of outcomes) {
    alarms = tell(profile, alarms, place, outcome, shown);
    place = outcome.transition?.to ?? place;
  }
  return { node: { runtime, nowTs, alarms, from, step: done }, shown, effort };
}

/** Adds what an outcome shows to `shown`. Returns the alarms that are open after it. */
function tell(
  profile: Profile,
  before: readonly OpenAlarm[],
  from: Place,
  { firings, ended, transition }: Evaluated,
  shown: string[],
): readonly OpenAlarm[] {
  const to = transition?.to ?? from;
  const isLeft = to.puId !== from.puId || to.stId !== from.stId;
  const fired: LiveEvent[] = [];
  for (const { event, tells, isFirst, actions } of firings) {
    shown.push(goal.fires(event.cause.engine));
    // A notice of a move is sent if the device came from another state.
    const isReentry = asksForMove(actions) && transition !== undefined && !transition.event;
    if ((tells === 'notice' && !isReentry) || (tells === 'alarm' && isFirst))
      shown.push(goal.tells(event.cause.engine));
    const live = eventOf(profile, event.cause.engine);
    if (live?.hasEpisodes) fired.push(live);
  }
  if (isLeft) shown.push(goal.leaves(from));
  if (transition) shown.push(goal.reaches(to));
  const kept = before.filter(({ event, until }) => {
    const name = { puId: from.puId, stId: event.stId, evId: event.evId };
    const isCleared = until === null && ended.some((it) => goal.ends(it) === goal.ends(name));
    const stays = until === null && event.isGlobal && to.puId === from.puId;
    const isOver = isCleared || (isLeft && !stays && !fired.includes(event));
    if (isOver) shown.push(goal.ends(name));
    return !isOver && !fired.includes(event);
  });
  return [...kept, ...fired.map((event) => ({ event, until: isLeft ? to : null }))];
}

function eventOf(profile: Profile, { puId, stId, evId }: EventName): LiveEvent | undefined {
  return profile.purposes
    .get(puId)
    ?.states.get(stId)
    ?.events.find((it) => it.evId === evId);
}
