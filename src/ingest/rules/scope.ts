import type { Sizes } from '../../contract/sizes.ts';
import type { Rejection } from '../../contract/rejection.ts';
import type { DeviceIdentity } from '../../contract/uplink.ts';
import type { Listening } from '../../engine/listening.ts';
import type { Budget } from './model.ts';
import type { DeviceContext } from './device-context.ts';
import type { Changes } from './changes.ts';
import type { PlannedOutcome } from './outcome.ts';
import type { StoredAlready } from './stored-already.ts';

/** How far a device's time may be off, in milliseconds, and up to what age an event is notified by push and SMS. */
export type ApplyLimits = {
  maxAheadMs: number;
  /** Where the clock should be less where it is, while it is in doubt, ms (src/clock). Absent: 0. */
  doubtSpanMs?: (() => number) | undefined;
  /** What is older than the history keeps would be gone at once. */
  measurementMaxAgeMs: number;
  eventMaxAgeMs: number;
  ringMaxAgeMs: number;
  /** How much an account's devices may say of themselves; absent: anything. */
  sizesOf?: (accountId: number) => Sizes;
  /** Rejections of one message that are kept one by one. */
  rejectionsPerMessage: number;
  /** What a device's rejections may take: no payload is kept beyond that. */
  rejectionBytesPerDevice: number;
  /** When the device's connector did not listen; absent, or undefined: it always did. Asked often. */
  listeningOf?: (device: DeviceIdentity) => Listening | undefined;
};

/** What a rule sees of the message it applies. `reject` keeps an item and says why. */
export type MessageScope = {
  topic: string;
  arrivedTs: number;
  rows: Changes;
  limits: ApplyLimits;
  /** Where it is spent, what is left of the message's items waits for another transaction. */
  budget: Budget;
  reject: (rejection: Rejection) => void;
  /** Null: of the device's measurements nothing is stored already, or the transaction fails. */
  stored: StoredAlready | null;
  /** Told of each item; null: nobody asks. */
  outcome: PlannedOutcome | null;
};

/**
 * The device after those items of a message that were applied, and how many; 1 where it has none (`sizeOf`), 0 where
 * nothing of the message was looked at yet.
 */
export type Applied = { context: DeviceContext; items: number };
