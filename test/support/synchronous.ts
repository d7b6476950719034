import { expect } from 'vitest';
import type { Cluster } from './cluster.ts';
import { openClient, runOn } from './template.ts';

/** A server whose commits wait for a synchronous standby, which is not there. */
export type WithoutStandby = {
  /** From now on no commit returns. */
  requireStandby(): Promise<void>;
  /** Whoever waits for the standby is let go. */
  letGo(): Promise<void>;
  /**
   * Gives what resolves when something waits for the standby that began after this: a commit of `Database.transaction`,
   * or a statement with `text` in it.
   */
  watch(text?: string): Promise<() => Promise<void>>;
  /**
   * The same of a commit that is told from others by what it did: `writes` rows of the table, or `uses` them; or
   * `confirms` what was read before, and has touched no table.
   */
  watchOwn(what: 'writes' | 'uses' | 'confirms', table: string): Promise<() => Promise<void>>;
  /** Has what waits for the standby seen by everybody, as a crash does, without any standby having it. */
  crash(): Promise<void>;
};

/** By its locks, which a commit has until it returns. The service's write probe locks tables too, but no index. */
const hasTable = (modes: string) => `
  exists (select from pg_locks l
           where l.pid = a.pid and l.relation = to_regclass($2) and l.mode in (${modes}))
  and exists (select from pg_locks l join pg_index i on i.indexrelid = l.relation where l.pid = a.pid)`;
const own = {
  writes: hasTable(`'RowExclusiveLock'`),
  uses: hasTable(`'RowExclusiveLock', 'AccessShareLock'`),
  confirms: `$2 <> '' and not exists (
    select from pg_locks l where l.pid = a.pid and l.locktype in ('relation', 'advisory'))`,
};

export function withoutStandby({ url, halt, start }: Cluster): WithoutStandby {
  const run = (sql: string, values: unknown[] = []) =>
    runOn(url(), async (client) => {
      const { rows } = await client.query<Record<string, unknown>>(sql, values);
      return rows;
    });

  /** Whether a commit waits. Backends show the setting before the server has taken it up. */
  async function waits(): Promise<boolean> {
    const client = openClient(url());
    await client.connect();
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    let isOver = false;
    const trial = client
      .query(`select pg_logical_emit_message(true, 'trial', '')`)
      .catch(() => undefined)
      .finally(() => (isOver = true));
    for (;;) {
      const [waiting] = await run(
        `select pg_terminate_backend(pid) from pg_stat_activity where pid = $1 and wait_event = 'SyncRep'`,
        [rows[0]?.pid],
      );
      if (!waiting && !isOver) continue;
      await trial;
      await client.end();
      return waiting !== undefined;
    }
  }

  /** `condition`: on the session `a`, with parameters from $2 on. */
  async function watch(condition: string, values: unknown[]): Promise<() => Promise<void>> {
    const [now] = await run('select clock_timestamp()::text as since');
    const countWaiting = async () => {
      const rows = await run(
        `select from pg_stat_activity a
          where wait_event = 'SyncRep' and query_start > $1 and ${condition}`,
        [now?.['since'], ...values],
      );
      return rows.length;
    };
    return async () => {
      await expect.poll(countWaiting).toBeGreaterThan(0);
    };
  }

  return {
    async requireStandby() {
      await run(`alter system set synchronous_standby_names = 'absent'`);
      await run('select pg_reload_conf()');
      await expect.poll(waits).toBe(true);
    },
    async letGo() {
      await run('alter system reset synchronous_standby_names');
      await run('select pg_reload_conf()');
    },
    watch: (text = 'pg_logical_emit_message') => watch('position($2 in query) > 0', [text]),
    watchOwn: (what, table) => watch(own[what], [table]),
    async crash() {
      await halt('immediate');
      await start();
    },
  };
}
