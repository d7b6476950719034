import type { Rejection } from '../core/rejection.ts';
import type { Rows } from './rows.ts';

/** How far a device's time may be off, in milliseconds, and up to what age an event rings a phone. */
export type ApplyLimits = {
  maxAheadMs: number;
  /** What is older than the history keeps would be gone at once. */
  measurementMaxAgeMs: number;
  eventMaxAgeMs: number;
  ringMaxAgeMs: number;
  /** Rejections of one message that are kept one by one. */
  rejectionsPerMessage: number;
};

/** What a rule sees of the message it applies. `reject` keeps an item and says why. */
export type Scope = {
  arrivedTs: number;
  rows: Rows;
  limits: ApplyLimits;
  reject: (rejection: Rejection) => void;
};
