import type { EventName } from '../../contract/event.ts';
import type { Purpose } from '../../contract/purpose.ts';
import type { Place } from '../../contract/values.ts';
import type { WitnessStep } from '../../contract/warnings.ts';
import { type CompiledCause, compileProfile, type LiveEvent, type Profile } from '../compile.ts';
import { type Bounds, classesOf } from './classes.ts';
import { type Impossible, placeKey, placesWithin, whyImpossible } from './impossible.ts';
import { keyOf } from './key.ts';
import { dueTsOf, goal, type Node, startNode, stepsTo, walk } from './walk.ts';

/*
 * Tries what purposes can do, through the real engine: first breadth first, with one value of each class of answers
 * and the times that conditions name, which finds shortest streams; then by long walks, which find what needs many
 * steps. What is found is a stream that anybody can play. What is not found is impossible only if all was tried.
 */

/** A short stream that leads there; `never`: nothing measured, and no time, does; `unknown`: neither is known. */
type Claim = { is: 'witnessed'; steps: WitnessStep[] } | { is: 'never' } | { is: 'unknown' };

/** Why an event never fires: by its causes alone, because its state is never reached, or for none of these reasons. */
type WhyNever = Impossible | 'unreachable' | 'shadowed';

export type Explored = {
  /** `ends`: how its alarm is over; null if it opens none. `why`: null unless it never fires. */
  events: (EventName & { fires: Claim; ends: Claim | null; why: WhyNever | null })[];
  states: (Place & { reached: Claim; left: Claim })[];
  /** Whether no claim is `unknown`. */
  isWhole: boolean;
};

/**
 * `bounds`: the values that senses can have, if known. `mostEffort`: how much is tried, in causes that judge a
 * measurement; what is found depends on it.
 */
type ExploreOptions = {
  bounds?: ReadonlyMap<string, Bounds> | undefined;
  mostEffort?: number | undefined;
};

/** Explores purposes as one profile, from the initial state of the first. The result depends on the arguments alone. */
export function explore(purposes: readonly Purpose[], options: ExploreOptions = {}): Explored {
  return new Exploration(purposes, options).run();
}

/** Takes about a tenth of a second. */
const mostEffortIfAbsent = 500_000;
/** The part of it that goes into trying everything; the rest into walks. */
const partOfBreadth = 0.6;
/** The longest walk. */
const mostSteps = 60;

/** How far apart measurements are if time does not matter, ms. */
const stepMs = 1_000;

class Exploration {
  readonly #purposes: readonly Purpose[];
  readonly #profile: Profile;
  readonly #mostEffort: number;
  readonly #bounds: ReadonlyMap<string, Bounds>;
  readonly #steps = new Map<string, WitnessStep[]>();
  readonly #impossible = new Map<LiveEvent, Impossible>();
  readonly #places: ReadonlyMap<string, Place>;
  /** What may be shown and is not yet. */
  readonly #wanted: Set<string>;
  readonly #found = new Map<string, WitnessStep[]>();
  #isWhole: boolean;
  #effort = 0;
  #random = 1;

  constructor(purposes: readonly Purpose[], { bounds, mostEffort }: ExploreOptions) {
    this.#purposes = purposes;
    const [all, isClosed] = closed(purposes);
    this.#profile = compileProfile('', all);
    this.#mostEffort = mostEffort ?? mostEffortIfAbsent;
    this.#bounds = bounds ?? new Map();
    this.#isWhole = isClosed && !this.#profile.isTimed;
    for (const { event } of this.#listEvents()) {
      const why = whyImpossible(event, this.#bounds);
      if (why !== null) this.#impossible.set(event, why);
    }
    this.#places = placesWithin(this.#profile, (at) => liveAt(this.#profile, at), this.#impossible);
    this.#wanted = this.#goals();
  }

  run(): Explored {
    const start = startNode(this.#profile);
    this.#show([goal.reaches(start.runtime)], start);
    if (!this.#tryAll(start)) {
      this.#isWhole = false;
      this.#walkOn(start);
    }
    return this.#told();
  }

  /** Breadth first. Returns whether there is nothing more to try or to find. */
  #tryAll(start: Node): boolean {
    const known = new Set<string>();
    const waiting: Node[] = [start];
    for (const node of waiting) {
      for (const step of this.#stepsAt(node)) {
        if (this.#wanted.size === 0) return true;
        if (this.#effort >= this.#mostEffort * partOfBreadth) return false;
        const next = this.#walk(node, step);
        if (!next) continue;
        const key = keyOf(this.#profile, next);
        if (known.has(key)) continue;
        known.add(key);
        waiting.push(next);
      }
    }
    return this.#isWhole;
  }

  /** Goes far, along steps that are as good as random but the same each time. */
  #walkOn(start: Node): void {
    // Where nothing can be done at first, nothing ever can.
    if (this.#stepsAt(start).length === 0) return;
    while (this.#wanted.size > 0 && this.#effort < this.#mostEffort) {
      let node: Node | null = start;
      for (let count = 0; node && count < mostSteps; count++) {
        if (this.#effort >= this.#mostEffort) return;
        const steps = this.#stepsAt(node);
        const step: WitnessStep | undefined = steps[this.#below(steps.length)];
        if (!step) break;
        node = this.#walk(node, step);
      }
    }
  }

  /** The next of a row of numbers below `most` that have no order (xorshift). */
  #below(most: number): number {
    this.#random ^= this.#random << 13;
    this.#random ^= this.#random >>> 17;
    this.#random ^= this.#random << 5;
    return (this.#random >>> 0) % most;
  }

  #walk(from: Node, step: WitnessStep): Node | null {
    const { node, shown, effort } = walk(this.#profile, from, step);
    this.#effort += effort;
    if (node) this.#show(shown, node);
    return node;
  }

  #show(shown: readonly string[], node: Node): void {
    for (const one of shown) {
      if (!this.#wanted.delete(one)) continue;
      const steps = stepsTo(node);
      this.#found.set(one, steps.length > fewSteps ? this.#shortened(one, steps) : steps);
    }
  }

  /** The steps without those that are not needed. */
  #shortened(aim: string, given: WitnessStep[]): WitnessStep[] {
    let steps = given;
    for (let at = steps.length - 2; at >= 0 && this.#effort < this.#mostEffort; at--) {
      const fewer = this.#upTo(aim, steps.toSpliced(at, 1));
      if (fewer) steps = fewer;
      at = Math.min(at, steps.length - 1);
    }
    return steps;
  }

  /** The first of these steps, as many as show it; null if they do not. */
  #upTo(aim: string, steps: WitnessStep[]): WitnessStep[] | null {
    let node = startNode(this.#profile);
    for (const step of steps) {
      const walked = walk(this.#profile, node, step);
      this.#effort += walked.effort;
      if (!walked.node) return null;
      node = walked.node;
      if (walked.shown.includes(aim)) return stepsTo(node);
    }
    return null;
  }

  /** The measurements that make a difference here, and to wait for the next tick. */
  #stepsAt(node: Node): WitnessStep[] {
    const { runtime, nowTs } = node;
    const place = placeKey(runtime);
    let steps = this.#steps.get(place);
    if (!steps) {
      const found = stepsOf(liveAt(this.#profile, runtime), this.#bounds);
      this.#isWhole &&= found.isWhole;
      this.#effort += found.effort;
      this.#steps.set(place, (steps = found.steps));
    }
    const dueTs = dueTsOf(this.#profile, node);
    return dueTs === null ? steps : [...steps, { afterMs: Math.max(0, dueTs - nowTs) }];
  }

  #listEvents(): { puId: number; event: LiveEvent }[] {
    return this.#purposes.flatMap(({ puId }) =>
      [...(this.#profile.purposes.get(puId)?.states.values() ?? [])].flatMap(({ events }) =>
        events.map((event) => ({ puId, event })),
      ),
    );
  }

  /** Why its causes, or the moves of all events, never let an event fire; null if they may. */
  #whyNever({ puId, event }: { puId: number; event: LiveEvent }): WhyNever | null {
    const why = this.#impossible.get(event);
    if (why) return why;
    const isLive = event.isGlobal
      ? [...this.#places.values()].some((place) => place.puId === puId)
      : this.#places.has(placeKey({ puId, stId: event.stId }));
    return isLive ? null : 'unreachable';
  }

  #mayLeave(place: Place): boolean {
    return liveAt(this.#profile, place).some(
      (event) =>
        event.target &&
        placeKey(event.target.place) !== placeKey(place) &&
        !this.#impossible.has(event),
    );
  }

  /** What may be shown, as far as causes and moves say. */
  #goals(): Set<string> {
    const goals = new Set<string>();
    for (const one of this.#listEvents()) {
      if (this.#whyNever(one) !== null) continue;
      const { stId, evId, hasEpisodes } = one.event;
      goals.add(goal.fires({ puId: one.puId, stId, evId }));
      if (hasEpisodes) goals.add(goal.ends({ puId: one.puId, stId, evId }));
    }
    const own = new Set(this.#purposes.map(({ puId }) => puId));
    for (const place of this.#places.values()) {
      if (!own.has(place.puId)) continue;
      goals.add(goal.reaches(place));
      if (this.#mayLeave(place)) goals.add(goal.leaves(place));
    }
    return goals;
  }

  #told(): Explored {
    const claim = (aim: string): Claim => {
      const steps = this.#found.get(aim);
      if (steps) return { is: 'witnessed', steps };
      return { is: this.#isWhole || !this.#wanted.has(aim) ? 'never' : 'unknown' };
    };
    return {
      events: this.#listEvents().map(({ puId, event }) => {
        const name = { puId, stId: event.stId, evId: event.evId };
        const fires = claim(goal.fires(name));
        const ends = event.hasEpisodes ? claim(goal.ends(name)) : null;
        const why = fires.is === 'never' ? (this.#whyNever({ puId, event }) ?? 'shadowed') : null;
        return { ...name, fires, ends, why };
      }),
      states: this.#purposes.flatMap(({ puId, states }) =>
        states.map(({ stId }) => {
          const place = { puId, stId };
          return { ...place, reached: claim(goal.reaches(place)), left: claim(goal.leaves(place)) };
        }),
      ),
      isWhole: this.#wanted.size === 0 || this.#isWhole,
    };
  }
}

/** A stream of so few steps is short enough. */
const fewSteps = 2;

/** The purposes with an empty one for each that they name and do not have; and whether none was missing. */
export function closed(purposes: readonly Purpose[]): [all: Purpose[], isClosed: boolean] {
  const known = new Set(purposes.map(({ puId }) => puId));
  const targets = purposes.flatMap(({ states }) =>
    states.flatMap(({ events }) =>
      events.flatMap(({ actions: { engine } }) =>
        engine?.gotoPuId === undefined || known.has(engine.gotoPuId)
          ? []
          : [{ puId: engine.gotoPuId, stId: engine.gotoStId ?? 0 }],
      ),
    ),
  );
  const missing = Map.groupBy(targets, ({ puId }) => puId);
  const stubs = [...missing].map(([puId, places]): Purpose => {
    const stIds = new Set([0, ...places.map(({ stId }) => stId)]);
    const states = [...stIds].map((stId) => ({ stId, isGlobal: false, events: [] }));
    return { puId, initStId: 0, states };
  });
  return [[...purposes, ...stubs], stubs.length === 0];
}

/** The events that are live in a place, in the order in which they are tried. */
export function liveAt(profile: Profile, { puId, stId }: Place): LiveEvent[] {
  const purpose = profile.purposes.get(puId);
  const own = purpose?.states.get(stId)?.events ?? [];
  return [...own, ...(purpose?.globalEvents.filter((event) => event.stId !== stId) ?? [])];
}

/** What makes a difference to some events: values of each sense, how often, and how long after the last one. */
function stepsOf(
  live: readonly LiveEvent[],
  bounds: ReadonlyMap<string, Bounds>,
): { steps: WitnessStep[]; isWhole: boolean; effort: number } {
  let isWhole = true;
  let effort = 0;
  const steps: WitnessStep[] = [];
  const causes = live.flatMap((event) => event.causes);
  for (const [sId, reading] of Map.groupBy(causes, (cause) => cause.sId)) {
    const beside = live.filter((event) => event.causes.some((cause) => cause.sId === sId));
    const pauses = new Set([stepMs, ...beside.flatMap((event) => event.causes.flatMap(pausesOf))]);
    const classes = classesOf(
      reading.filter(({ time }) => !time?.noneForMs),
      bounds.get(sId),
    );
    isWhole &&= classes.isWhole;
    effort += classes.effort;
    // Any value ends a silence.
    const values = classes.values.length === 0 ? [0] : classes.values;
    const counts = new Set([1, ...reading.flatMap(countsOf)]);
    for (const times of counts)
      for (const afterMs of pauses)
        for (const val of values) steps.push({ afterMs, sId, val, ...(times > 1 && { times }) });
  }
  // What is short and simple is tried first, and so found.
  return {
    steps: steps.toSorted((one, other) => lengthOf(one) - lengthOf(other)),
    isWhole,
    effort,
  };
}

const lengthOf = ({ afterMs, times = 1 }: WitnessStep) => times * afterMs;

/** As many as a cause needs to hold, and as many as end its episode. */
function countsOf({ needed, slack }: CompiledCause): number[] {
  return slack > 0 ? [needed, slack + 1] : [needed];
}

/** How long to wait so that a condition on time changes, ms. */
function pausesOf({ time }: CompiledCause): number[] {
  const { over, maxAgeMs } = time ?? {};
  return [
    ...(over ? [Math.ceil(over.ms / 2), over.ms + Math.ceil(over.ms / 12)] : []),
    ...(maxAgeMs ? [maxAgeMs + 1] : []),
  ];
}
