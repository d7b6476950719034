import { expect } from 'vitest';
import type { Cluster } from './cluster.ts';
import { openClient, runOn } from './template.ts';

/** A server whose commits wait for a synchronous standby that is not there. */
export type WithoutStandby = {
  /** From now on no commit returns. */
  requireStandby(): Promise<void>;
  /** The same from when `act` wants to write the table; its earlier commits return. */
  requireStandbyAt(table: string, act: () => void): Promise<void>;
  /** Releases everything that waits for the standby. */
  letGo(): Promise<void>;
  /**
   * Returns a function that resolves when something that began later waits for the standby: a commit of
   * `Database.transaction`, or a statement that contains `text`.
   */
  watch(text?: string): Promise<() => Promise<void>>;
  /**
   * The same for a commit that differs from the service's own commits by what it did: the sorted tables that it
   * wrote; `reads` if it wrote none; `nothing` if it touched none. `of` is a pattern for that.
   */
  watchCommit(of: string): Promise<() => Promise<void>>;
  /** Makes what waits for the standby visible to everybody, as a crash does, without any standby having it. */
  crash(): Promise<void>;
};

/**
 * What each commit that has waited since $1 did, by the locks that it holds until it returns. With TimescaleDB these
 * include its chunks', which are in another schema. `account_activity` is counted along every few seconds.
 */
const waitingCommits = `
  select coalesce(string_agg(distinct t.name, ' ' order by t.name) filter (where t.mode = 'RowExclusiveLock'),
                  case when count(t.name) = 0 then 'nothing' else 'reads' end) as did
    from pg_stat_activity a
    left join (select l.pid, l.mode, l.relation::regclass::text as name
                 from pg_locks l join pg_class c on c.oid = l.relation
                where c.relkind in ('r', 'p')) t
      on t.pid = a.pid and t.name <> 'account_activity' and position('.' in t.name) = 0
   where a.wait_event = 'SyncRep' and a.query_start > $1
   group by a.pid`;

export function withoutStandby({ url, halt, start }: Cluster): WithoutStandby {
  const run = (sql: string, values: unknown[] = []) =>
    runOn(url(), async (client) => {
      const { rows } = await client.query<Record<string, unknown>>(sql, values);
      return rows;
    });

  /** Whether a commit waits. Backends show the setting before the server applies it. */
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

  const now = async () => (await run('select clock_timestamp()::text as now'))[0]?.['now'];

  async function requireStandby(): Promise<void> {
    await run(`alter system set synchronous_standby_names = 'absent'`);
    await run('select pg_reload_conf()');
    await expect.poll(waits).toBe(true);
  }

  return {
    requireStandby,
    async requireStandbyAt(table, act) {
      const holder = openClient(url());
      await holder.connect();
      const findHeld = () =>
        run('select from pg_locks where relation = to_regclass($1) and not granted', [table]);
      try {
        await holder.query(`begin; lock table ${table} in share mode`);
        act();
        await expect.poll(findHeld).not.toEqual([]);
        await requireStandby();
      } finally {
        await holder.end();
      }
    },
    async letGo() {
      await run('alter system reset synchronous_standby_names');
      await run('select pg_reload_conf()');
    },
    async watch(text = 'pg_logical_emit_message') {
      const since = await now();
      const countWaiting = async () => {
        const rows = await run(
          `select from pg_stat_activity
            where wait_event = 'SyncRep' and query_start > $1 and position($2 in query) > 0`,
          [since, text],
        );
        return rows.length;
      };
      return async () => {
        await expect.poll(countWaiting).toBeGreaterThan(0);
      };
    },
    async watchCommit(of) {
      const since = await now();
      // Collects everything that waited, because the service gives up what waits for long.
      const seen = new Set<unknown>();
      const look = async () => {
        for (const { did } of await run(waitingCommits, [since])) seen.add(did);
        return [...seen];
      };
      return async () => {
        await expect.poll(look).toContainEqual(expect.stringMatching(`^${of}$`));
      };
    },
    async crash() {
      await halt('immediate');
      await start();
    },
  };
}
