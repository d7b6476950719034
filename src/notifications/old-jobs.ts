import { Logger, run, runMigrations, type TaskList } from 'graphile-worker';
import pg from 'pg';
import { addJobs, jobSpec } from '../db/jobs.ts';
import type { Sql } from '../db/sql.ts';
import { pause } from '../lib/wait.ts';
import type { NotificationLog } from './log.ts';
import { dueChannel } from './recipients.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** The task of a job that an older program has made for one push or SMS. */
export const deliverTask = 'deliver-notification';

/** A job must outlast processes that end while they hold it. */
const maxRuns = 100;

/**
 * Gives the message of an older program's job its place among those that take turns. Nothing else delivers it:
 * who holds its job has it, and without a job it has a turn.
 */
export async function takeOver(sql: Sql, notificationId: number, nowTs: WallMs): Promise<void> {
  await sql.query(
    `with taken as (
       update notification set due_at = ms_to_timestamp($2)
        where id = $1 and state = 'queued' and contact_id is null and due_at is null
       returning id
     )
     select pg_notify($3, '') from taken`,
    [notificationId, nowTs, dueChannel],
  );
}

/**
 * Makes the jobs of all push and SMS of older programs that wait, in a database that came without the tables
 * of jobs; they are there by now (`migrateWorker`). Called again it makes none twice. The schema may still be that of
 * an older program, without `due_at`.
 */
export async function requeueNotifications(sql: Sql): Promise<void> {
  await sql.query(
    `with due as (
       select array_agg(
                ${jobSpec({ task: '$1', payload: `json_build_object('notificationId', id)`, maxRuns: '$2', key: `'notification ' || id` })}
                order by id) as specs
         from notification n
        where state = 'queued' and kind in ('push', 'sms') and to_jsonb(n) ->> 'due_at' is null
       having count(*) > 0
     )
     select count(*) from due cross join lateral ${addJobs}(due.specs)`,
    [deliverTask, maxRuns],
  );
}

export type WorkerOptions = {
  connectionString: string;
  concurrency: number;
  pollIntervalMs: number;
  log: NotificationLog;
  tasks: TaskList;
};

const restartDelayMs = 5_000;

/** Creates or updates the job tables; several processes may do so at once. */
export async function migrateWorker(connectionString: string, log: NotificationLog): Promise<void> {
  const pgPool = openPool(connectionString, 1, log);
  try {
    await runMigrations({ pgPool, logger: loggerOf(log) });
  } finally {
    await pgPool.end();
  }
}

/**
 * Works jobs off until it is closed. The runner gives up when its connections are cut off; it is
 * started again then.
 */
export function startWorker(options: WorkerOptions): { close: () => Promise<void> } {
  const { connectionString, concurrency, log } = options;
  const closing = new AbortController();
  // One more connection listens, one is for whoever finishes a job meanwhile.
  const pgPool = openPool(connectionString, concurrency + 2, log);
  // It never rejects: what goes wrong is logged and tried again.
  const ended = keepRunning(options, pgPool, closing.signal).then(() => pgPool.end());
  return {
    close: async () => {
      closing.abort();
      await ended;
    },
  };
}

async function keepRunning(
  { concurrency, pollIntervalMs, log, tasks }: WorkerOptions,
  pgPool: pg.Pool,
  closing: AbortSignal,
): Promise<void> {
  while (!closing.aborted) {
    try {
      const runner = await run({
        pgPool,
        concurrency,
        pollInterval: pollIntervalMs,
        taskList: tasks,
        parsedCronItems: [],
        noHandleSignals: true,
        logger: loggerOf(log),
      });
      const stop = () => void runner.stop().catch(() => undefined);
      closing.addEventListener('abort', stop, { once: true });
      if (closing.aborted) stop();
      await runner.promise.finally(() => closing.removeEventListener('abort', stop));
    } catch (error) {
      log.warn(
        { event: 'worker.restarted', err: error },
        'The worker of notifications stopped and is started again.',
      );
    }
    await pause(restartDelayMs, closing);
  }
}

/**
 * A pool of our own: the library takes its listeners off its own one before that is closed, and a
 * connection that breaks then would end the process.
 */
function openPool(connectionString: string, max: number, log: NotificationLog): pg.Pool {
  const pool = new pg.Pool({ connectionString, max });
  const onError = (error: Error) =>
    log.debug(
      { event: 'worker.connection-lost', err: error },
      'The worker of notifications lost a database connection.',
    );
  pool.on('error', onError);
  pool.on('connect', (client) => client.on('error', onError));
  return pool;
}

/** A delivery that is tried again is an outcome, not an alarm: only warnings of the runner itself are. */
function loggerOf(log: NotificationLog): Logger {
  return new Logger(() => (level, message, meta) => {
    const name: string = level;
    if (name === 'warning')
      log.warn(
        { event: 'worker.warning', text: message, worker: meta },
        'The job runner has a warning.',
      );
    else
      log.debug(
        { event: 'worker.message', text: message, worker: meta },
        'The job runner has a message.',
      );
  });
}
