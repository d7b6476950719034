import type { DeviceAction, Purpose, Sense } from '../../api/types.ts';
import { formatTyped, isPlain } from '../../text/format.ts';
import { t } from '../../text/t.ts';

/** A number that a value is compared with, and where it stands in the purposes. */
export type ProfileLimit = {
  /** Indexes of purpose, state and event. */
  at: readonly [number, number, number];
  sId: string;
  which: 'isGt' | 'isLt';
  value: number;
  /** The event's own name, and the names of the states that it leads from and to. */
  name: string;
  from: string;
  /** The purpose has no other state. */
  isAlone: boolean;
  to: string | null;
  /** The same states by number. `fromStId` is null in a global state: it meets every other. */
  fromStId: number | null;
  toStId: number | null;
};

type Event = Purpose['states'][number]['events'][number];
type Cause = Event['causes'][number];

/**
 * The limits of purposes that can be changed in place: each is the only cause of its event, and its only threshold.
 * Null if a number is compared in another way, so that changing some limits alone could break what they mean together.
 * `isOwn`: the console wrote them, whose events mean nothing together; the others are left out.
 */
export function limitsIn(
  purposes: readonly Purpose[],
  { isOwn = false } = {},
): ProfileLimit[] | null {
  const found: ProfileLimit[] = [];
  for (const [p, { states }] of purposes.entries())
    for (const [s, { stId, name: from, isGlobal, events }] of states.entries())
      for (const [e, { name = '', causes, anyOf, actions }] of events.entries()) {
        if (anyOf && !isOwn) return null;
        if (causes.every(({ thresholds }) => Object.keys(thresholds).length === 0)) continue;
        const [cause, ...more] = causes;
        const which = cause && more.length === 0 ? onlyLimit(cause) : null;
        if (isOwn && which === null) continue;
        if (!cause || which === null) return null;
        const target = states.find((state) => state.stId === actions.engine?.gotoStId);
        const other = target && target.stId !== stId ? target : null;
        const value = cause.thresholds[which] ?? 0;
        found.push({
          at: [p, s, e],
          sId: cause.sId,
          which,
          value,
          name,
          from: from ?? String(stId),
          isAlone: states.length === 1,
          to: other && (other.name ?? String(other.stId)),
          fromStId: isGlobal ? null : stId,
          toStId: other && other.stId,
        });
      }
  return found.length === 0 ? null : found;
}

function onlyLimit({ threshold, thresholds }: Cause): 'isGt' | 'isLt' | null {
  const [which, ...others] = Object.keys(thresholds);
  if (others.length > 0 || !isPlain(threshold)) return null;
  return which === 'isGt' || which === 'isLt' ? which : null;
}

type Changed = {
  purposes: readonly Purpose[];
  /** In the order of `limitsIn`, as are the new values. */
  limits: readonly ProfileLimit[];
  senses: ReadonlyMap<string, Sense>;
};

/** The purposes with other numbers. An event whose name has the number gets the new one. */
export function withNumbers({ purposes, limits, senses }: Changed, values: readonly number[]) {
  const changed = structuredClone([...purposes]);
  for (const [place, limit] of limits.entries()) {
    const [p, s, e] = limit.at;
    const event = changed[p]?.states[s]?.events[e];
    const value = values[place];
    const [cause] = event?.causes ?? [];
    if (!event || !cause || value === undefined) continue;
    cause.thresholds[limit.which] = value;
    if (event.name) event.name = renamed(limit, value, senses.get(limit.sId));
  }
  return changed;
}

type Changes = NonNullable<DeviceAction['changes']>;

/** The same as changes of an action on many devices; only what differs. */
export function changesOf(
  { purposes, limits, senses }: Changed,
  values: readonly number[],
): Changes {
  return limits.flatMap((limit, place) => {
    const [p, s, e] = limit.at;
    const state = purposes[p]?.states[s];
    const event = state?.events[e];
    const value = values[place];
    if (!state || !event || value === undefined || value === limit.value) return [];
    const { puId = 0 } = purposes[p] ?? {};
    const to = renamed(limit, value, senses.get(limit.sId));
    return [
      {
        puId,
        stId: state.stId,
        evId: event.evId,
        cause: 0,
        thresholds: { [limit.which]: value },
        ...(to === limit.name ? {} : { name: { from: limit.name, to } }),
      },
    ];
  });
}

/** The severity of every alarm of purposes, as changes of an action; only what differs. */
export const severityChanges = (
  purposes: readonly Purpose[],
  severity: NonNullable<Changes[number]['severity']>,
): Changes =>
  purposes.flatMap((purpose) =>
    purpose.states.flatMap(({ stId, events }) =>
      events
        .filter((event) => opensAlarm(event, stId, purpose))
        .filter(({ actions }) => (actions.severity ?? 'warning') !== severity)
        .map(({ evId }) => ({ puId: purpose.puId, stId, evId, cause: 0, severity })),
    ),
  );

/** Whether an event of a state opens an alarm, as the engine decides it (`tellsOf`). */
export function opensAlarm(
  { actions: { alarm, cloud, sms, engine }, causes, anyOf }: Event,
  stId: number,
  { puId, initStId }: Purpose,
): boolean {
  if (alarm !== undefined) return alarm;
  const { gotoPuId = puId, gotoStId = initStId } = engine ?? {};
  const leadsBack =
    engine !== undefined && stId !== initStId && gotoPuId === puId && gotoStId === initStId;
  const tells = cloud?.sendPush === true || sms !== undefined;
  return tells && !leadsBack && !(anyOf ?? [causes]).some((group) => group.every(isAnything));
}

/** Every value agrees, so that it is never over. */
const isAnything = ({ thresholds, threshold }: Cause) =>
  thresholds.isAny === true &&
  Object.keys(thresholds).length === 1 &&
  !threshold?.negate &&
  [threshold?.forMs, threshold?.noneForMs, threshold?.over].every((member) => member === undefined);

/** The name of an event with a new number, if the old one is in it, once: "above 8 °C". */
function renamed({ name, value }: ProfileLimit, to: number, sense: Sense | undefined): string {
  for (const shown of [sense, { unit: sense?.unit }, {}]) {
    const old = formatTyped(value, shown).replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
    const number = new RegExp(
      `(?<![\\d.,-])${old.replace('\u00a0', '\\s')}(?![\\d]|[.,]\\d)`,
      'gu',
    );
    if (name.match(number)?.length === 1) return name.replace(number, formatTyped(to, shown));
  }
  return name;
}

/** Whether a device can be where both are looked at: in one state, or moved from either to the other. */
function meets(one: ProfileLimit, other: ProfileLimit): boolean {
  const isEverywhere = one.fromStId === null || other.fromStId === null;
  const isSame = one.fromStId === other.fromStId;
  return isEverywhere || isSame || (other.toStId === one.fromStId && one.toStId === other.fromStId);
}

/**
 * How far back a value must be before the device leaves the state that a limit led to: the distance to the limit that
 * leads back. Null if none does, or for the first of the two, so that it is said once.
 */
export function marginOf(
  limits: readonly ProfileLimit[],
  values: readonly number[],
  place: number,
): number | null {
  const limit = limits[place];
  if (!limit || limit.fromStId === null || limit.toStId === null) return null;
  const found = limits.slice(0, place).findIndex((other) => {
    const isPair = other.sId === limit.sId && other.which !== limit.which;
    const isBack = other.toStId === limit.fromStId && other.fromStId === limit.toStId;
    return isPair && isBack && other.at[0] === limit.at[0];
  });
  const [one, other] = [values[found], values[place]];
  if (one === undefined || other === undefined) return null;
  return Number(Math.abs(one - other).toPrecision(12));
}

/**
 * What is wrong with each limit; empty if nothing is. Two limits of one sense contradict each other if all values are
 * beyond one of them: in one state, or in two states that lead to each other, where a value would move the device
 * back and forth.
 */
export function contradictions(
  limits: readonly ProfileLimit[],
  values: readonly number[],
): string[] {
  return limits.map((limit, place) => {
    if (limit.which !== 'isLt') return '';
    const value = values[place] ?? limit.value;
    const isBeyond = limits.some((other, n) => {
      if (other.which !== 'isGt' || other.sId !== limit.sId || other.at[0] !== limit.at[0])
        return false;
      return meets(limit, other) && value > (values[n] ?? other.value);
    });
    return isBeyond ? t('watch.wrong.numbers') : '';
  });
}
