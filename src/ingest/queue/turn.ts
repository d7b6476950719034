import type { Committing } from '../../db/transaction.ts';
import type { Work } from './device-queue.ts';

/** A batch whose commit is under way, and whose queues have gone on. */
export type Ahead = { committing: Committing; settled: Promise<void> };

/** What the storing of a batch is told by whom it was taken from, and tells it. */
export type Turn = {
  /** The batch that this one is planned on top of, as if it were committed. */
  ahead: Ahead | null;
  /** Told when nothing is left to do but the commit, and the queues know what follows it. */
  onCommitting: (committing: Committing) => void;
  /** Takes what the transaction that is being committed had no room for; so many units are rests of messages. */
  putBack: (left: Work[], rests: number) => void;
  /** Told when a part of the batch is settled while others of its accounts are still to be. */
  onPartSettled?: (part: Work[]) => void;
};
