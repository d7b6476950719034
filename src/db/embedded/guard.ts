import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { createScramClient } from '../pg-driver.ts';

/** Advisory lock of the one service that uses an embedded database; released when its session ends. */
const serviceLock = 7199;

/** A connection and the moment it is over: its server or its session is gone. */
export type GuardConnection = { client: pg.Client; ended: Promise<void> };

/** A connection that holds the lock, or which process holds it instead. */
export type HeldLock = (GuardConnection & { heldBy: null }) | { heldBy: string };

/**
 * Connects and takes the lock. A process that was just killed may hold it for a moment longer, so
 * it is asked for again until `timeoutMs` is over.
 */
export async function takeServiceLock(
  connectionString: string,
  timeoutMs: number,
): Promise<HeldLock> {
  const client = createScramClient({
    connectionString,
    application_name: `sensorium ${process.pid}`,
    connectionTimeoutMillis: 5_000,
  });
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()));
  await client.connect();
  // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for another one to end
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_lock($1) as taken',
      [serviceLock],
    );
    if (rows[0]?.taken) return { client, ended, heldBy: null };
    // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for another one to end
    if (performance.now() > deadline) break;
    await delay(100);
  }
  const { rows } = await client.query<{ name: string }>(
    `select application_name as name
     from pg_locks join pg_stat_activity using (pid)
     where locktype = 'advisory' and classid = 0 and objid = $1 and granted
       and pg_locks.database = (select oid from pg_database where datname = current_database())`,
    [serviceLock],
  );
  await client.end();
  return { heldBy: rows[0]?.name.replace(/^sensorium /, 'process ') ?? 'somebody' };
}
