import type { Batch } from '../queue/batch.ts';
import type { DeviceQueue } from '../queue/device-queue.ts';
import type { CommitDeps } from './commit.ts';
import type { AttemptDeps, Attempts, Redeliveries, RetryBounds } from './retry.ts';

export type StoreDeps = CommitDeps &
  AttemptDeps & {
    repeats: Redeliveries;
    retry: RetryBounds;
    /** Told of each transaction whether it stored what it held; not of items that are wrong themselves. */
    onTried: (isStored: boolean) => void;
    /** The service stops: nothing is tried again. */
    stopping: AbortSignal;
  };

/** A batch while it is stored, by as many transactions as it takes. */
export type Storing = {
  /** Null for a part of one, which has no queues to tell of. */
  batch: Batch | null;
  /** Devices of which a message has failed, in this batch or in the one ahead of it. */
  givenUp: Set<DeviceQueue>;
  attempts: Attempts;
  deps: StoreDeps;
};
