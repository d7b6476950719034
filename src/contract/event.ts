import { z } from 'zod';
import type { WallMs } from '../lib/clock-readings.ts';

/** Where in a profile an event comes from; specification section 6. `ts` in milliseconds. */
export type EngineCause = { pId: string; puId: number; stId: number; evId: number; ts: number };

/** Which event of a device's current profile; its alarm is named by it. */
export type EventName = { puId: number; stId: number; evId: number };

/** The measurement that completed a cause; a position gives 1 (inside) or 0 and its place beside it. */
export type CauseSense = { sId: string; val: number; ts: number; lat?: number; long?: number };

/** Which condition a cause's measurement met, and how often: the answer to "why did it fire?". */
export type CauseDetail = {
  sId: string;
  orderId: number;
  /** As in the purpose, without lists of more than 16 numbers or points. */
  thresholds: Record<string, unknown>;
  /** The number that was compared, after `relative` and `decimalAcc`; absent for a position. */
  compared?: number;
  /** What was compared is a statistic over so long (`over`), or a difference from the first value (`relative`). */
  over?: { ms: number; stat: 'avg' | 'sum' | 'delta' };
  relative?: true;
  negate: boolean;
  matched: number;
  of: number;
  needed: number;
  /** How long that had lasted when the event fired, ms: a condition (`forMs`), or a silence (`noneForMs`). */
  heldMs?: number;
  silentMs?: number;
  /** When it began: the time of the first measurement that agreed, or the arrival of the last one. */
  sinceTs?: number;
};

/** The device moved: `newValue` and `oldValue` are puIds, or stIds where only the state changed. */
export type DeviceEvent = {
  type: 'device';
  ts: number;
  event: 'purposeChanged' | 'stateChanged';
  cause: { engine: EngineCause };
  newValue: number;
  oldValue: number;
};

/** An event of a purpose fired. `notified: false` says that people were notified of its episode already. */
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

/** An event on its way to the table. `key` recognises the same event when it is delivered again. */
export type NewEvent = { accountId: number; deviceId: number; key: string; event: RecordedEvent };

/** Why nobody is told of a firing: the first of these that applies. */
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
