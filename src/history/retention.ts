import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { readHistoryKind } from './kind.ts';

/** How many days the history is kept. */
export type Retention = { eventsDays: number; measurementsDays: number };

/** An advisory lock of its own: any number that nothing else uses. */
const policyLock = 7202;

/**
 * Sets TimescaleDB's retention policies where they differ from the configuration; called at every
 * start. On ordinary tables it does nothing: there `pruneHistory` deletes.
 */
export async function applyRetention(db: Database, retention: Retention): Promise<void> {
  if ((await readHistoryKind(db)) === 'plain') return;
  await db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [policyLock]);
    for (const relation of ['measurement', 'measurement_hour', 'event', 'event_sense']) {
      await applyPolicy(tx, relation, daysOf(relation, retention));
    }
  });
}

/** Days that a table of the history, or its aggregate, is kept. */
export function daysOf(relation: string, retention: Retention): number {
  return relation.startsWith('event') ? retention.eventsDays : retention.measurementsDays;
}

async function applyPolicy(tx: Sql, relation: string, days: number): Promise<void> {
  const { rows } = await tx.query<{ kept: boolean }>(
    `select (j.config ->> 'drop_after')::interval = make_interval(days => $2) as kept
       from timescaledb_information.jobs j
       left join timescaledb_information.continuous_aggregates a
         on a.materialization_hypertable_name = j.hypertable_name
      where j.proc_name = 'policy_retention'
        and (j.hypertable_name = $1 or a.view_name = $1)`,
    [relation, days],
  );
  if (rows[0]?.kept === true) return;
  await tx.query(`select remove_retention_policy($1::regclass, if_exists => true)`, [relation]);
  await tx.query(
    `select add_retention_policy($1::regclass, drop_after => make_interval(days => $2))`,
    [relation, days],
  );
}
