import type { Committing } from '../../db/transaction.ts';
import type { DeviceQueue, Work } from './device-queue.ts';

/**
 * Messages that are stored together. It holds their devices' queues until it is done, so that one device's
 * messages keep their order. Whoever stores it calls, in this order:
 * 1. `putBack`, where its first transaction has no room for all of it;
 * 2. `onCommitSent`, when nothing is left to do for that transaction but its commit;
 * 3. `partDone`, where parts of it are stored by transactions of their own: each as it is done.
 */
export type Batch = {
  works: Work[];
  /**
   * The batch whose commit is under way, and on top of which this one is planned; null: none. Let go of when
   * this one is done: otherwise each would keep all before it in memory.
   */
  behind: Batch | null;
  /** Its commit, once it was sent while the batch was alone. */
  committing: Committing | null;
  /** Devices of which something was given up: what follows of them must not be stored before it comes again. */
  givenUp: Set<DeviceQueue>;
  /** Resolves when all of it is stored, put back or failed. */
  done: Promise<void>;
  /** Messages of it that wait again, in front of their queues; so many units are the rests of divided messages. */
  putBack(postponed: Work[], rests: number): void;
  /** The queues know what follows the commit: if the batch is alone, the next messages of its devices are taken. */
  onCommitSent(committing: Committing): void;
  /** The next messages of these devices may be taken, while others of the batch are still to be stored. */
  partDone(part: Work[]): void;
};
