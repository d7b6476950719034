import type { Sql } from '../database.ts';

/** `timescaledb`: hypertables, with the columnstore and the hourly aggregate; else ordinary tables. */
export type HistoryKind = 'timescaledb' | 'plain';

/** How this database was migrated, which an extension that comes later does not change. */
export async function readHistoryKind(sql: Sql): Promise<HistoryKind> {
  const { rows } = await sql.query<{ found: boolean }>(
    `select to_regclass('measurement_hour') is not null as found`,
  );
  return rows[0]?.found === true ? 'timescaledb' : 'plain';
}

/** The tables of the history: each has one key that begins with (device_id, `tag`, ts). */
export const historyTables = [
  { name: 'measurement', tag: 's_id' },
  { name: 'event', tag: 'type' },
  { name: 'event_sense', tag: 's_id' },
] as const;
export type HistoryTable = (typeof historyTables)[number];
