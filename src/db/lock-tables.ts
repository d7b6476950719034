import { stateOf, states } from './errors.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { StartError } from '../start-error.ts';
import type { Log } from '../log/logger.ts';

export type LockOptions = {
  log: Pick<Log, 'warn'>;
  /** How long to wait for sessions that hold a table before they are ended; 10 s. */
  patienceMs?: number;
};

/** Of one attempt: meanwhile others queue behind its lock request. */
const attemptMs = 500;
const pauseMs = 100;
const maxAttemptsAfterwards = 20;

/** A session that holds a lock on one of the tables. */
type Holder = { pid: number; name: string; state: string | null };

/**
 * Runs `work` in a transaction that holds these tables (as `schema.name`, quoted) for itself alone: what
 * was under way is committed before, or rolled back. In the end it ends the sessions that are in the way. Throws a StartError that names those that it may not end.
 */
export async function withTablesLocked(
  client: pg.Client,
  tables: string[],
  work: () => Promise<void>,
  { log, patienceMs = 10_000 }: LockOptions,
): Promise<void> {
  // oxlint-disable-next-line no-restricted-globals -- a migration waits for sessions of other processes
  const deadline = performance.now() + patienceMs;
  for (let late = 0; ;) {
    try {
      await client.query('begin');
      await client.query(`set local lock_timeout = ${attemptMs}`);
      if (tables.length > 0)
        await client.query(
          `lock table ${tables.map((table) => `only ${table}`).join(', ')} in access exclusive mode`,
        );
      await work();
      await client.query('commit');
      return;
    } catch (error) {
      await client.query('rollback');
      if (!isInTheWay(error)) throw error;
      // oxlint-disable-next-line no-restricted-globals -- a migration waits for sessions of other processes
      if (performance.now() > deadline) {
        const left = await endHolders(client, tables, log);
        if (late++ === maxAttemptsAfterwards) throw stillHeld(left, error);
      }
      await delay(pauseMs);
    }
  }
}

function isInTheWay(error: unknown): boolean {
  const state = stateOf(error);
  return state === states.lockNotAvailable || state === states.deadlockDetected;
}

/** Ends them, and gives those that it may not end. */
async function endHolders(
  client: pg.Client,
  tables: string[],
  log: LockOptions['log'],
): Promise<Holder[]> {
  const { rows: holders } = await client.query<Holder>(
    `select distinct a.pid, a.application_name as name, a.state
       from pg_locks l
       join pg_stat_activity a using (pid)
      where l.granted
        and l.locktype = 'relation'
        and l.relation = any ($1::text[]::regclass[])
        and l.database = (select oid from pg_database where datname = current_database())
        and l.pid <> pg_backend_pid()`,
    [tables],
  );
  const left: Holder[] = [];
  for (const holder of holders) {
    const ended = await client.query('select pg_terminate_backend($1)', [holder.pid]).then(
      () => true,
      () => false,
    );
    if (ended)
      log.warn(
        { event: 'database.holder-ended' },
        `Ended a session that held the tables for too long: ${describe(holder)}.`,
      );
    else left.push(holder);
  }
  return left;
}

function describe({ pid, name, state }: Holder): string {
  return `${pid} (${[name, state].filter(Boolean).join(', ') || 'unnamed'})`;
}

function stillHeld(holders: Holder[], cause: unknown): StartError {
  const who = holders.map(describe).join(', ') || 'sessions that come again and again';
  return new StartError(
    `The database's tables cannot be moved: they are held by ${who}. End what holds them, and start again.`,
    { cause },
  );
}
