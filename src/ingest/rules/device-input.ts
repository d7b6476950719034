import type { ProfileAnswer, StateReport } from '../../contract/uplink.ts';
import type { Place } from '../../contract/values.ts';
import type { Listening, Newest } from '../../engine/last-seen.ts';
import type { StoredRuntime } from '../../engine/runtime-codec.ts';
import type { Watermark } from './watermark.ts';

/*
 * What is kept of a device besides its measurements, so that it can be played again: a row of `device_input` for each
 * thing that its evaluation depends on and that no measurement shows. A device that never had a profile
 * is not evaluated, and has none.
 */

/**
 * One input. `given`: what was read of the device when that had changed since it was last noted, as it is before the
 * message. `tick`: time alone changed something before the message, or the message is that tick. `current`: a message
 * made the pending profile of a device current that never answers. `answer`, `request`, `state`, `configuration`: what
 * the device sent, where it changed something. `break`: the clock was set back, and arrivals begin anew.
 */
export type DeviceInput =
  | { kind: 'given'; body: Given }
  | { kind: 'tick'; body: TickInput | null }
  | { kind: 'current' | 'request'; body: null }
  | { kind: 'answer'; body: ProfileAnswer }
  | { kind: 'state'; body: StateReport }
  | { kind: 'configuration'; body: { sIds: string[] } }
  | { kind: 'break'; body: { lastTs: number } };

/** An input in its place: see migration 000044. */
export type PlacedInput = { deviceId: number; arrived: number; nth: number } & DeviceInput;

/** All that a device's evaluation depends on. Times in ms. */
export type Given = {
  pending: { pId: string; ts: number } | null;
  current: { pId: string; engine: 'service' | 'device' } | null;
  answers: boolean;
  place: Place & { ts: number };
  reported: (Place & { ts: number }) | null;
  sIds: string[];
  /** By sense that a profile reads: the newest values, and the watermark if it has one. */
  seen: Record<string, Newest>;
  clocks: Record<string, Watermark>;
  /** Null without a current profile, and if it is too long to be kept here. */
  runtime: StoredRuntime | null;
};

/** What a tick knew besides the time; absent members are false, 0, none, and enough. */
export type TickInput = {
  /** It was no message's, so evidence from a clock that was ahead is corrected (`bringBack`). */
  isTick?: true;
  doubtMs?: number;
  gaps?: Listening['gaps'];
  /** There were more gaps than are kept here. */
  isCut?: true;
  /** Its budget was spent before all was done that was due, and this is how it began: see `Budget`. */
  budget?: { spent: number; limit: number };
};

/** In an hour of arrivals, the oldest measurement that came more than an hour late; ms. */
export type LateHour = { hour: number; oldestTs: number };

export const hourMs = 3_600_000;
