import type { DeviceQueue, Work } from '../queue/device-queue.ts';
import type { Changes } from '../rules/changes.ts';
import type { DeviceContext } from '../rules/device-context.ts';
import type { DueRow } from '../rules/due.ts';
import type { Message, Unit } from '../rules/message.ts';

/** One transaction, computed and not yet written. */
export type Plan = {
  rows: Changes;
  /** Devices that stand elsewhere, as they stand afterwards; `version` is the one they were read at. */
  moved: DeviceContext[];
  /** Devices that stay where they are, with other evidence. */
  evaluated: DeviceContext[];
  /** Devices whose row stays, and must still be as it was read; with a profile, and without. */
  held: DeviceContext[];
  unchanged: DeviceContext[];
  /** When devices are due next, where that changes. */
  due: DueRow[];
  /** What each queue knows after the commit. */
  after: { queue: DeviceQueue; context: DeviceContext }[];
  /** The messages, or parts of them, that are stored with it. */
  units: Unit[];
  /** Messages of devices that are no more. */
  orphaned: Unit[];
  /** What of the batch it holds, and what it has no room for. */
  works: Work[];
  postponed: Work[];
  /** The messages that were divided: units of them are in both. */
  divided: Message[];
  /**
   * Which of the rows' events are of which message: from this place on, up to the next one's; null: time brought
   * them, and the message that it was noticed with waits behind them.
   */
  sources: { message: Message | null; from: number }[];
  /** What it cost: `Budget`. */
  cost: number;
  /** By account, how much more that is than it was charged when the batch was taken; below zero: less. */
  charges: Map<number, number>;
};
