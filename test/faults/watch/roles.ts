import { sId } from '../messages.ts';

/** What a watched device does, and so which alarms it should have. */
export type Role = 'swinging' | 'lasting' | 'falling-silent' | 'lively';

/** `thresholdMs`: the value of the role's timed member. */
export type RoleRules = {
  /** The alarm's only cause. */
  cause: object;
  thresholdMs: number;
  /** The pause after the acknowledgement of message `seq`. */
  pauseMs: (seq: number) => number;
};

export const isHigh = (seq: number): boolean => seq % 2 === 1;
/** Every second value is high. */
export const valueOf = (seq: number): number => (isHigh(seq) ? 60 : 10);

const high = { isGt: 50 };
const lastsMs = 1_500;
const silentMs = 2_000;
/** Longer than the longest absence that is not recorded as a gap (15 s), plus the pause between two messages. */
const longSilentMs = 20_000;

export const rules: Record<Role, RoleRules> = {
  /** Each high value opens an alarm, and the next one ends it. */
  swinging: { cause: { thresholds: high }, thresholdMs: 0, pauseMs: () => 700 },
  /** A high value lasts until the next message: in turn longer than a tick needs, and shorter. */
  lasting: {
    cause: { thresholds: high, threshold: { forMs: lastsMs } },
    thresholdMs: lastsMs,
    pauseMs: (seq) => (isHigh(seq) ? (seq % 4 === 1 ? 2_000 : 5_000) : 200),
  },
  /** Silent after each message, for longer than the alarm waits. */
  'falling-silent': {
    cause: { threshold: { noneForMs: silentMs } },
    thresholdMs: silentMs,
    pauseMs: () => silentMs + 1_800,
  },
  /** Never silent: only an absence of the service could look like it. */
  lively: {
    cause: { threshold: { noneForMs: longSilentMs } },
    thresholdMs: longSilentMs,
    pauseMs: () => 500,
  },
};

export const roles = Object.keys(rules) as Role[];

export function purposeOf(role: Role): object {
  const { cause } = rules[role];
  const actions = { cloud: { sendPush: true } };
  const event = { evId: 1, name: role, eventLog: true, actions, causes: [{ sId, ...cause }] };
  return { puId: 1, name: role, initStId: 1, states: [{ stId: 1, events: [event] }] };
}
