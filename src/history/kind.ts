import type { Sql } from '../db/sql.ts';

/** `timescaledb`: hypertables, with the columnstore and the hourly aggregate; else ordinary tables. */
export type HistoryKind = 'timescaledb' | 'plain';

/** Decided when the database was migrated; an extension that is installed later does not change it. */
export async function readHistoryKind(sql: Sql): Promise<HistoryKind> {
  const { rows } = await sql.query<{ found: boolean }>(
    `select to_regclass('measurement_hour') is not null as found`,
  );
  return rows[0]?.found === true ? 'timescaledb' : 'plain';
}

/** The tables of the history, each with the columns before `ts` in its key. */
export const historyTables = [
  { name: 'measurement', key: ['series_id'] },
  { name: 'event', key: ['device_id', 'type'] },
  { name: 'event_sense', key: ['device_id', 's_id'] },
] as const;
export type HistoryTable = (typeof historyTables)[number];
