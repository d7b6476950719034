import { setTimeout as delay } from 'node:timers/promises';
import { Logger, run, runMigrations } from 'graphile-worker';
import type { RunnerOptions, TaskList } from 'graphile-worker';
import type { OutboxLog } from './log.ts';

export type WorkerOptions = {
  connectionString: string;
  concurrency: number;
  pollIntervalMs: number;
  log: OutboxLog;
  tasks: TaskList;
};

const restartDelayMs = 5_000;

/** Creates or updates the job tables; several processes may do so at once. */
export async function migrateWorker(connectionString: string, log: OutboxLog): Promise<void> {
  await runMigrations({ connectionString, maxPoolSize: 2, logger: loggerOf(log) });
}

/**
 * Works jobs off until it is closed. The runner gives up when the database is away for long; it is
 * started again then.
 */
export function startWorker(options: WorkerOptions): { close(): Promise<void> } {
  const closing = new AbortController();
  const ended = keepRunning(options, closing.signal);
  return {
    close: async () => {
      closing.abort();
      await ended;
    },
  };
}

async function keepRunning(options: WorkerOptions, closing: AbortSignal): Promise<void> {
  while (!closing.aborted) {
    try {
      const runner = await run(runnerOptions(options));
      const stop = () => void runner.stop().catch(() => undefined);
      closing.addEventListener('abort', stop, { once: true });
      if (closing.aborted) stop();
      await runner.promise.finally(() => closing.removeEventListener('abort', stop));
    } catch (error) {
      options.log.warn({ err: error }, 'The outbox worker stopped and is started again');
    }
    await delay(restartDelayMs, undefined, { signal: closing }).catch(() => undefined);
  }
}

function runnerOptions(options: WorkerOptions): RunnerOptions {
  const { connectionString, concurrency, pollIntervalMs, log, tasks } = options;
  return {
    connectionString,
    concurrency,
    pollInterval: pollIntervalMs,
    // One more listens, one is for whoever finishes a job meanwhile.
    maxPoolSize: concurrency + 2,
    taskList: tasks,
    parsedCronItems: [],
    noHandleSignals: true,
    logger: loggerOf(log),
  };
}

/** A delivery that is tried again is an outcome, not an alarm: only warnings of the runner itself are. */
function loggerOf(log: OutboxLog): Logger {
  return new Logger(() => (level, message, meta) => {
    const name: string = level;
    if (name === 'warning') log.warn({ worker: meta }, message);
    else log.debug({ worker: meta }, message);
  });
}
