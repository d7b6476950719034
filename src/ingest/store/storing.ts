import type { Batch } from '../queue/batch.ts';
import type { DeviceQueue } from '../queue/device-queue.ts';
import type { CommitDeps } from '../commit.ts';
import type { AttemptDeps, Attempts, Redeliveries } from './retry.ts';

export type StoreDeps = CommitDeps &
  AttemptDeps & {
    redeliveries: Redeliveries;
    /**
     * When a transaction failed last that none has followed which stored what it held, ms; -Infinity: none. Items that
     * are wrong themselves do not count. `state` is the SQLSTATE, '' where there was none.
     */
    failing: { lastMs: number; state: string };
    /** When a transaction was committed last, ms. */
    progress: { lastMs: number };
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
