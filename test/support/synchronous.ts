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
  /** Has what waits for the standby seen by everybody, as a crash does, without any standby having it. */
  crash(): Promise<void>;
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
    async watch(text = 'pg_logical_emit_message') {
      const [now] = await run('select clock_timestamp()::text as since');
      const countWaiting = async () => {
        const rows = await run(
          `select from pg_stat_activity
            where wait_event = 'SyncRep' and query_start > $1 and position($2 in query) > 0`,
          [now?.['since'], text],
        );
        return rows.length;
      };
      return async () => {
        await expect.poll(countWaiting).toBeGreaterThan(0);
      };
    },
    async crash() {
      await halt('immediate');
      await start();
    },
  };
}
