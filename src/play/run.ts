import { Worker } from 'node:worker_threads';
import type { RuleOptions } from '../alarms/rules.ts';
import type { Database } from '../db/database.ts';
import { kindOf } from '../db/errors.ts';
import { backtestsLock, withinLockTime } from '../db/locks.ts';
import type { Listening } from '../engine/last-seen.ts';
import { saveProgress } from '../jobs/jobs.ts';
import type { Clock } from '../lib/clock-readings.ts';
import { pause, WakeableRest } from '../lib/wait.ts';
import { lockUsage } from '../quotas/quotas.ts';
import { findPlayedFrom } from './backtest.ts';
import { settleValues } from './budget.ts';
import {
  claimNext,
  type Claimed,
  findLeft,
  keepClaims,
  listUnsettled,
  releaseClaim,
  skipDevice,
  takeReserved,
} from './store.ts';
import type { BacktestWork, KeptResult } from './worker.ts';

/** When each device's connector listened, by the number of the device; undefined: it is not known. */
export type ListListening = (
  deviceIds: readonly number[],
  sinceTs: number,
) => Promise<ReadonlyMap<number, Listening | undefined>>;

type RunnerDeps = {
  db: Database;
  /** What a thread connects to. */
  database: BacktestWork['database'];
  rules: RuleOptions;
  listListening: ListListening;
  clock: Clock;
  newUuid: () => string;
  onError: (error: unknown) => void;
  /** How often it looks for backtests that another process stored or left. */
  pollMs?: number;
};

type BacktestRunner = {
  /** There is a new backtest. */
  wake(): void;
  close(): Promise<void>;
};

/** Backtests that a process plays at once, and the memory of each, MiB. */
const mostThreads = 2;
export const threadMiB = 256;
/** After so many failures of a device in a row, the backtest continues without it. */
const maxFailures = 3;
/** What is given back waits so long for others that work on the account. */
const lockWaitMs = 100;

/**
 * Plays backtests that are kept, in threads: those of all accounts in turns, whichever process stored them. If the
 * process is killed, another one goes on with the first device that is not done.
 */
export function startBacktestRunner(deps: RunnerDeps): BacktestRunner {
  const { db, onError, pollMs = 1_000 } = deps;
  const rest = new WakeableRest();
  const running = new Map<string, { worker: Worker | null; ended: Promise<void> }>();
  const stopping = new AbortController();

  async function claim(): Promise<void> {
    while (running.size < mostThreads && !stopping.signal.aborted) {
      const run = deps.newUuid();
      const claimed = await db.transaction((tx) => claimNext(tx, run, backtestsLock));
      if (!claimed) return;
      const place = { worker: null as Worker | null, ended: Promise.resolve() };
      running.set(run, place);
      const play = async () => {
        const result = await playClaimed(claimed, run, place).catch(
          (error: unknown): KeptResult => {
            onError(error);
            return { failed: '', isUnavailable: true };
          },
        );
        if ('failed' in result && result.failed !== '') onError(new Error(result.failed));
        const hasFailed = 'failed' in result && !result.isUnavailable && !stopping.signal.aborted;
        await releaseClaim(db, run, hasFailed).catch(onError);
        if ('failed' in result && result.isUnavailable) await pause(pollMs, stopping.signal);
      };
      place.ended = play().finally(() => {
        running.delete(run);
        rest.wake();
      });
    }
  }

  async function playClaimed(
    { jobId, accountId, failures }: Claimed,
    run: string,
    place: { worker: Worker | null },
  ): Promise<KeptResult> {
    if (failures >= maxFailures)
      await db.transaction(async (tx) => {
        const skipped = await skipDevice(tx, jobId, run);
        if (skipped) await saveProgress(tx, jobId, { count: 1, failed: [skipped] });
      });
    const left = await findLeft(db, jobId);
    if (!left || stopping.signal.aborted) return { ended: 'lost' };
    const { asked, devices, kept } = left;
    const ids = devices.map(({ id }) => id);
    const listening = await deps.listListening(ids, findPlayedFrom(asked));
    const backtest = {
      ...asked,
      devices: devices.map((device) => ({ ...device, listening: listening.get(device.id) })),
      rules: deps.rules,
    };
    const isCareful = failures > 0;
    const nowTs = deps.clock();
    const workerData: BacktestWork = {
      database: deps.database,
      kept: { run, jobId, accountId, backtest, kept, isCareful, nowTs },
    };
    const worker = new Worker(new URL('./worker.ts', import.meta.url), {
      workerData,
      resourceLimits: { maxOldGenerationSizeMb: threadMiB },
    });
    place.worker = worker;
    if (stopping.signal.aborted) void worker.terminate();
    return resultOf(worker);
  }

  async function settle(): Promise<void> {
    const putOff = new Set<number>();
    for (const { jobId, accountId } of await listUnsettled(db)) {
      if (putOff.has(accountId)) continue;
      await settleOne(jobId, accountId).catch((error: unknown) => {
        putOff.add(accountId);
        // Cancelled: somebody else works on the account.
        if (kindOf(error) !== 'cancelled') onError(error);
      });
    }
  }

  const settleOne = (jobId: number, accountId: number) =>
    db.transaction(async (tx) => {
      await withinLockTime(tx, lockWaitMs, () => lockUsage(tx, accountId));
      const reserved = await takeReserved(tx, jobId);
      if (reserved) await settleValues(tx, reserved, reserved.read);
    });

  async function tend(): Promise<void> {
    if (running.size > 0) await keepClaims(db, [...running.keys()]);
    await claim();
    await settle();
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      rest.begin();
      await tend().catch(onError);
      await rest.rest(pollMs);
    }
  }

  const tending = run();
  return {
    wake: () => rest.wake(),
    async close() {
      stopping.abort();
      rest.wake();
      await tending;
      const all = [...running.values()];
      await Promise.all(all.flatMap(({ worker }) => (worker ? [worker.terminate()] : [])));
      await Promise.all(all.map(({ ended }) => ended));
    },
  };
}

/** What a thread says before it ends. One that ends without a word has failed: it had too little memory. */
function resultOf(worker: Worker): Promise<KeptResult> {
  return new Promise((resolve) => {
    let failed = 'The thread of a backtest ended.';
    worker.once('message', resolve);
    worker.once('error', (error) => (failed = error.message));
    worker.once('exit', () => resolve({ failed, isUnavailable: false }));
  });
}
