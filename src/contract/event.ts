import { z } from 'zod';
import type { OverStat } from './values.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** The place in a profile where an event originates; specification section 6. `ts` in milliseconds. */
export type EngineCause = { pId: string; puId: number; stId: number; evId: number; ts: number };

/** Identifies an event of a device's current profile, and its alarm. */
export type EventName = { puId: number; stId: number; evId: number };

/** The measurement that completed a cause. A position has 1 (inside) or 0 as `val`, and its coordinates. */
export type CauseSense = { sId: string; val: number; ts: number; lat?: number; long?: number };

/** Which condition a cause's measurements met, and how often: the answer to "why did it fire?". */
export type CauseDetail = {
  sId: string;
  orderId: number;
  /** With `anyOf`: the number of the group that fired it, from 0. */
  group?: number;
  /** As in the purpose, without lists of more than 16 numbers or points. */
  thresholds: Record<string, unknown>;
  /** The number that was compared, after `relative` and `decimalAcc`; absent for a position. */
  compared?: number;
  /**
   * Set if the compared number is a statistic over this period (`over`), or a difference from the first value
   * (`relative`).
   */
  over?: { ms: number; stat: OverStat };
  relative?: true;
  negate: boolean;
  matched: number;
  of: number;
  needed: number;
  /** How long the condition (`forMs`) or the silence (`noneForMs`) had lasted when the event fired, ms. */
  heldMs?: number;
  silentMs?: number;
  /** When that began: the time of the first measurement that agreed, or the arrival of the last one. */
  sinceTs?: number;
};

/** The device moved. `newValue` and `oldValue` are puIds, or stIds if only the state changed. */
export type DeviceEvent = {
  type: 'device';
  ts: number;
  event: 'purposeChanged' | 'stateChanged';
  cause: { engine: EngineCause };
  newValue: number;
  oldValue: number;
};

/** An event of a purpose fired. `notified: false`: nobody was notified of this firing; `notNotified` says why. */
export type SenseEvent = {
  type: 'sense';
  ts: number;
  cause: { engine: EngineCause; senses: CauseSense[] };
  why?: CauseDetail[];
  /** When the measurement that fired it arrived, or its tick was due; ms. */
  arrivedTs?: WallMs;
  notified?: boolean;
  /** Why nobody was notified, if `notified` is false. */
  notNotified?: NotNotified;
};

export type RecordedEvent = DeviceEvent | SenseEvent;

/**
 * What an event was called in its profile, and what each of its causes required; empty texts where the profile has no
 * name. `to`: the place to which the event leads, if it moves the device. `conditions` are absent if they are too long
 * to be kept.
 */
export type EventMeaning = {
  purposeName: string;
  stateName: string;
  eventName: string;
  conditions?: EventCondition[];
  to?: { purposeName: string; stateName: string };
};

/** The condition of a cause, as in the purpose, without lists of more than 16 numbers or points. */
type EventCondition = {
  sId: string;
  /** With `anyOf`: the number of its group, from 0. */
  group?: number;
  threshold: Record<string, unknown>;
  thresholds: Record<string, unknown>;
};

/**
 * An event that is about to be stored. A repeated delivery of it has the same `key`. `meaning` is absent if its profile
 * is not known; `contentId`: of the profile's stored content.
 */
export type NewEvent = {
  accountId: number;
  deviceId: number;
  key: string;
  event: RecordedEvent;
  meaning?: EventMeaning | undefined;
  contentId?: number | undefined;
};

/** Why nobody is notified of a firing: the first reason that applies. */
export const NotNotified = z
  .enum([
    'same-episode',
    'too-old',
    'acknowledged',
    'snoozed',
    'held-back',
    'not-allowed',
    'not-configured',
    'no-recipient',
  ])
  .meta({ id: 'NotNotified' });
export type NotNotified = z.infer<typeof NotNotified>;
