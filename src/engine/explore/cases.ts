import type { CauseSense, EventName } from '../../contract/event.ts';
import type { Purpose } from '../../contract/purpose.ts';
import type { Measurement, Place } from '../../contract/values.ts';
import { compileProfile, type Evaluated, type Firing, type Profile } from '../compile.ts';
import { Evaluator } from '../evaluator.ts';
import { type Runtime, startRuntime } from '../runtime.ts';
import { closed, type Explored } from './explore.ts';
import type { WitnessStep } from '../../contract/warnings.ts';

/** What a step leads to, in the form of test/vectors. */
type Led = {
  fires: (EventName & { record: boolean; ts: number; senses: CauseSense[] })[];
  ended?: EventName[];
  shows?: string[];
  moves?: Place & { event: { event: string; oldValue: number; newValue: number } | null };
};

type CaseStep =
  ({ measurement: Measurement; ticks?: Led[] } & Led) | { tick: { at: number }; ticks: Led[] };

/** A test of an engine: what it must do with purposes and measurements, in the form of test/vectors. */
type Case = { rule: string; purposes: Purpose[]; steps: CaseStep[]; ends: Place };

/** The most steps of all cases together, and the most text of their purposes: what needs more is left out. */
const mostSteps = 10_000;
const mostLength = 1_000_000;

/** A case for each different stream of what was found: how events fire, how alarms end, how states are left. */
export function casesOf(purposes: readonly Purpose[], { events, states }: Explored): Case[] {
  const [all] = closed(purposes);
  const profile = compileProfile('', all);
  const claims = [
    ...events.map(({ fires, ...of }) => ({ claim: fires, rule: `${eventText(of)} fires.` })),
    ...events.map(({ ends, ...of }) => ({
      claim: ends,
      rule: `The alarm of ${eventText(of)} ends.`,
    })),
    ...states.map(({ left, ...of }) => ({ claim: left, rule: `${placeText(of)} is left.` })),
  ];
  const known = new Set<string>();
  const cases: Case[] = [];
  const most = Math.max(1, Math.floor(mostLength / JSON.stringify(all).length));
  let left = mostSteps;
  for (const { claim, rule } of claims) {
    if (claim?.is !== 'witnessed') continue;
    const stream = JSON.stringify(claim.steps);
    left -= claim.steps.reduce((sum, { times = 1 }) => sum + times, 0);
    if (known.has(stream) || left < 0 || cases.length >= most) continue;
    known.add(stream);
    cases.push({ rule, purposes: all, ...play(profile, claim.steps) });
  }
  return cases;
}

const placeText = ({ puId, stId }: Place) => `State ${stId} of purpose ${puId}`;
const eventText = ({ puId, stId, evId }: EventName) =>
  `event ${evId} of state ${stId} of purpose ${puId}`;

/** Plays a stream from the moment at which the profile becomes current, which is 0. */
function play(profile: Profile, witness: readonly WitnessStep[]): Pick<Case, 'steps' | 'ends'> {
  let runtime: Runtime = startRuntime(profile, 0);
  let nowTs = 0;
  const newest = new Map<string, Measurement>();
  const steps: CaseStep[] = [];
  for (const { afterMs, sId, val, times = 1 } of witness)
    for (let count = 0; count < times; count++) {
      nowTs += afterMs;
      const evaluator = new Evaluator(profile, runtime);
      const ticks = evaluator.ticksUntil(nowTs).slice();
      if (sId === undefined || val === undefined) {
        steps.push({ tick: { at: nowTs }, ticks: ticks.map((tick) => ledBy(tick, newest)) });
      } else {
        const measurement = { sId, val, ts: nowTs };
        const moment = { t: nowTs, arrivedTs: nowTs };
        const before = [...ticks, ...evaluator.ticksForcedBy(sId, moment)].map((tick) =>
          ledBy(tick, newest),
        );
        newest.set(sId, measurement);
        const led = ledBy(evaluator.measure(measurement, moment, true), newest);
        steps.push({ measurement, ...(before.length > 0 && { ticks: before }), ...led });
      }
      runtime = evaluator.end();
    }
  const { puId, stId } = runtime;
  return { steps, ends: { puId, stId } };
}

function ledBy(
  { firings, ended, transition }: Evaluated,
  newest: ReadonlyMap<string, Measurement>,
): Led {
  const shows = firings.flatMap(({ actions }) => actions.display?.showText ?? []);
  const led: Led = { fires: firings.map((firing) => firedBy(firing, newest)) };
  if (ended.length > 0) led.ended = ended;
  if (shows.length > 0) led.shows = shows;
  if (!transition) return led;
  const { to, event: moved } = transition;
  const event = moved && {
    event: moved.event,
    oldValue: moved.oldValue,
    newValue: moved.newValue,
  };
  return { ...led, moves: { ...to, event: event ?? null } };
}

/** A silent sense has its newest stored value, of which the engine knows nothing. */
function firedBy(
  { event, record }: Firing,
  newest: ReadonlyMap<string, Measurement>,
): Led['fires'][number] {
  const { puId, stId, evId } = event.cause.engine;
  const measured = event.cause.senses.slice();
  const senses = (event.why ?? []).flatMap(({ sId, silentMs }): CauseSense[] => {
    if (silentMs === undefined) return measured.splice(0, 1);
    const last = newest.get(sId);
    if (!last) return [];
    const { val, ts } = last;
    return [typeof val === 'number' ? { sId, val, ts } : { sId, val: 0, ts, ...val }];
  });
  return { puId, stId, evId, record, ts: event.ts, senses };
}
