import { type Listening, listenedSince, type Newest, pauseMs } from '../../engine/last-seen.ts';
import { encodeRuntime, type StoredRuntime } from '../../engine/runtime-codec.ts';
import {
  type DeviceInput,
  type Given,
  hourMs,
  type LateHour,
  type TickInput,
} from './device-input.ts';
import type { WallMs } from '../../lib/clock-readings.ts';
import {
  type Changes,
  costs,
  type DeviceState,
  evidenceLength,
  type MessageScope,
} from './model.ts';

/** Longer evidence is not kept with what is given, in characters. */
const longestRuntime = 16_384;
const mostGaps = 500;

/** Keeps an input of a device, at the next place of its arrival. */
export function noteInput(
  { device, given }: DeviceState,
  input: DeviceInput,
  { rows, arrival, budget }: Pick<MessageScope, 'rows' | 'arrival' | 'budget'>,
): void {
  if (!given.isKept) return;
  const { deviceId } = device;
  rows.inputs.push({ deviceId, arrived: arrival.ts, nth: arrival.places++, ...input });
  budget.spent += costs.input;
}

/** What was read of the device, if it was not noted yet. Returns the device with that noted. */
export function noteGiven(deviceState: DeviceState, scope: MessageScope): DeviceState {
  const { given } = deviceState;
  if (given.isNoted) return deviceState;
  noteInput(deviceState, { kind: 'given', body: givenOf(deviceState) }, scope);
  return { ...deviceState, given: { ...given, isNoted: true } };
}

/** All that its evaluation depends on; without its evidence if that is longer than `longest`, in characters. */
export function givenOf(deviceState: DeviceState, longest = longestRuntime): Given {
  const { current, pending, pendingTs, place, placeTs, reported, senses, runtime } = deviceState;
  const watched = [...deviceState.watched].flatMap(([sId, number]): [string, Newest][] => {
    const newest = deviceState.seen.get(number);
    return newest ? [[sId, newest]] : [];
  });
  const isKept = current && runtime && evidenceLength(current.profile, runtime) <= longest;
  return {
    pending: pending && { pId: pending.pId, ts: pendingTs ?? 0 },
    current: current && { pId: current.profile.pId, engine: current.engine },
    answers: deviceState.answersProfiles,
    place: { ...place, ts: placeTs },
    reported,
    sIds: [...senses.keys()],
    seen: Object.fromEntries(watched),
    clocks: Object.fromEntries(deviceState.clocks ?? []),
    runtime: isKept ? (JSON.parse(encodeRuntime(current.profile, runtime)) as StoredRuntime) : null,
  };
}

/** Notes that time alone changed a device. `before`: the device before that; `budget`: how it began if it is spent. */
export function noteTick(
  before: DeviceState,
  scope: MessageScope,
  { isTick, budget }: TickOptions,
): void {
  const { limits } = scope;
  const doubtMs = limits.doubtSpanMs?.() ?? 0;
  const gaps = gapsThatMatter(before, limits.listeningOf?.(before.device));
  const body: TickInput = {
    ...(isTick && { isTick }),
    ...(isTick && doubtMs !== 0 && { doubtMs }),
    ...(gaps.length > 0 && { gaps: gaps.slice(-mostGaps) }),
    ...(gaps.length > mostGaps && { isCut: true as const }),
    ...(budget && { budget }),
  };
  noteInput(before, { kind: 'tick', body: Object.keys(body).length > 0 ? body : null }, scope);
}

type TickOptions = { isTick: boolean; budget: TickInput['budget'] };

/** Those that have ended before nothing of the device began do not count. */
function gapsThatMatter(
  { runtime, pendingTs }: DeviceState,
  listening: Listening | undefined,
): Listening['gaps'] {
  if (!listening || listening.gaps.length === 0) return [];
  const sinceTs = Math.min(
    (runtime && listenedSince(runtime)) ?? Infinity,
    pendingTs === null ? Infinity : pendingTs - pauseMs,
  );
  return listening.gaps.filter(({ toTs }) => toTs === null || toTs > sinceTs);
}

/** Notes a measurement that came more than an hour late. Returns what is known of the last such hour. */
export function noteLateHour(
  deviceId: number,
  known: LateHour | null,
  { ts, arrivedTs }: { ts: number; arrivedTs: WallMs },
  { lateHours }: Pick<Changes, 'lateHours'>,
): LateHour | null {
  if (ts >= arrivedTs - hourMs) return known;
  const hour = Math.floor(arrivedTs / hourMs);
  if (known?.hour === hour && known.oldestTs <= ts) return known;
  const late = { hour, oldestTs: ts };
  lateHours.set(`${deviceId} ${hour}`, { deviceId, ...late });
  return late;
}
