import {
  type Cause,
  listCauses,
  type Purpose,
  type PurposeEvent,
  type PurposePath,
  type State,
} from '../contract/purpose.ts';
import type { Problem } from '../errors.ts';

export const purposesPath: PurposePath = (index) => `/purposes/${index}`;

/**
 * Finds what prevents purposes from forming one profile: two with the same puId, a gotoPuId that none of them has, a
 * gotoStId that its target purpose lacks.
 */
export function checkProfile(purposes: Purpose[], pathOf: PurposePath = purposesPath): Problem[] {
  const byPuId = new Map<number, Purpose>();
  const problems: Problem[] = [];
  for (const [index, purpose] of purposes.entries()) {
    if (byPuId.has(purpose.puId)) {
      const message = `another purpose of the profile already has the puId ${purpose.puId}`;
      problems.push({ path: `${pathOf(index)}/puId`, message });
    } else {
      byPuId.set(purpose.puId, purpose);
    }
  }
  for (const [index, purpose] of purposes.entries()) {
    problems.push(...checkTargets(purpose, byPuId, pathOf(index)));
  }
  return problems;
}

function checkTargets(
  purpose: Purpose,
  byPuId: ReadonlyMap<number, Purpose>,
  path: string,
): Problem[] {
  const problems: Problem[] = [];
  for (const [s, state] of purpose.states.entries()) {
    for (const [e, event] of state.events.entries()) {
      const { gotoPuId, gotoStId } = event.actions.engine ?? {};
      const at = `${path}/states/${s}/events/${e}/actions/engine`;
      const target = gotoPuId === undefined ? purpose : byPuId.get(gotoPuId);
      if (!target) {
        const message = `no purpose of the profile has the puId ${gotoPuId}`;
        problems.push({ path: `${at}/gotoPuId`, message });
      } else if (gotoStId !== undefined && !target.states.some((it) => it.stId === gotoStId)) {
        const message = `purpose ${target.puId} has no state with the stId ${gotoStId}`;
        problems.push({ path: `${at}/gotoStId`, message });
      }
    }
  }
  return problems;
}

/** Limits for what a profile may cost a device: causes evaluated per measurement, and bytes of evidence. */
type Costs = { causesPerMeasurement: number; evidenceBytes: number };

/** Finds the states in which a device would exceed its limits, each with the figure. */
export function checkCosts(
  purposes: Purpose[],
  costs: Costs,
  pathOf: PurposePath = purposesPath,
): Problem[] {
  return purposes.flatMap((purpose, index) => {
    const global = sumUp(purpose.states.filter(({ isGlobal }) => isGlobal).flatMap(eventsOf));
    const most = mostRead(global);
    return purpose.states.flatMap((state, s) => {
      const path = `${pathOf(index)}/states/${s}`;
      const own = state.isGlobal ? sumUp([]) : sumUp(state.events);
      const live = { own, global, most };
      return [...checkCauses(live, costs, path), ...checkEvidence(live, costs, path)];
    });
  });
}

/** Totals over some events: causes by sense, and bytes of evidence. */
type Sum = { causes: Map<string, number>; bytes: number };

/** What is live in one state: its own events, those of global states, and the sense that most global causes read. */
type Live = { own: Sum; global: Sum; most: string[] };

const eventsOf = ({ events }: State) => events;

function sumUp(events: PurposeEvent[]): Sum {
  const causes = new Map<string, number>();
  let bytes = 0;
  for (const event of events) {
    bytes += eventBytes(event);
    for (const { cause } of listCauses(event))
      causes.set(cause.sId, (causes.get(cause.sId) ?? 0) + 1);
  }
  return { causes, bytes };
}

/** `most`: the sense that most global causes read; the global causes of other senses cost less in every state. */
function checkCauses(
  { own, global, most }: Live,
  { causesPerMeasurement }: Costs,
  path: string,
): Problem[] {
  for (const sId of new Set([...own.causes.keys(), ...most])) {
    const count = (own.causes.get(sId) ?? 0) + (global.causes.get(sId) ?? 0);
    if (count <= causesPerMeasurement) continue;
    const allowed = `at most ${causesPerMeasurement} causes may read the same sense`;
    return [
      {
        path,
        message: `${allowed}, but ${count} read ${sId} here, including those of global states`,
      },
    ];
  }
  return [];
}

function mostRead({ causes }: Sum): string[] {
  let most: [string, number] | null = null;
  for (const entry of causes) if (most === null || entry[1] > most[1]) most = entry;
  return most ? [most[0]] : [];
}

function checkEvidence({ own, global }: Live, costs: Costs, path: string): Problem[] {
  const bytes = runtimeBytes + own.bytes + global.bytes;
  if (bytes <= costs.evidenceBytes) return [];
  const allowed = `a device's evidence may have at most ${costs.evidenceBytes} bytes`;
  return [{ path, message: `${allowed}, but this profile can reach ${bytes}` }];
}

// A `Runtime` as JSON, with every number at its longest.
const runtimeBytes = 100;
/** `"-2147483648/-2147483648":{"causes":[],"rung":true},` */
const eventOverheadBytes = 52;
/** `{"window":"","agreed":{"val":-1.7976931348623157e+308,"ts":8640000000000000,"compared":…}},` */
const causeOverheadBytes = 120;
/** `"baseline":-1.7976931348623157e+308,` */
const baselineBytes = 36;
/** Twelve bins of a statistic, each with a sum, a count, and its first and last value. */
const overBytes = 1_024;
/** A cause with any time member: what it evaluated last, and what a run or a silence stores (`encodeTime`). */
const timeBytes = 240;
/** `,2678400000,[8640000000000000,1]`: an outcome that can expire, and the same for the episode. */
const agedBytes = 32;

function eventBytes(event: PurposeEvent): number {
  return listCauses(event).reduce((sum, { cause }) => sum + causeBytes(cause), eventOverheadBytes);
}

/** The longest that one cause's evidence can become. A window takes a byte for each measurement in it. */
function causeBytes({ threshold, measurement }: Cause): number {
  const { count = 1, relative, forMs, noneForMs, maxAgeMs, over } = threshold ?? {};
  const window = Math.max(count, measurement?.count ?? 0);
  const isTimed = (forMs ?? noneForMs ?? maxAgeMs ?? over) !== undefined;
  return (
    causeOverheadBytes +
    window * (maxAgeMs === undefined ? 1 : agedBytes) +
    (relative ? baselineBytes : 0) +
    (isTimed ? timeBytes : 0) +
    (over ? overBytes : 0)
  );
}
