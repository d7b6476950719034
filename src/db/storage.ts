import type { Sql } from './sql.ts';
import type { Log } from '../log/logger.ts';

/** The kind of database that stores the history, with its versions for the log. */
export type Storage = {
  kind: 'timescaledb' | 'timescaledb-apache' | 'postgresql';
  postgresqlVersion: string;
  timescaledbVersion: string | null;
};

/**
 * Creates the TimescaleDB extension if the server has loaded it. Without `shared_preload_libraries` the attempt would
 * end the connection, so this looks for the loader's own setting first.
 */
export async function offerTimescale(sql: Sql, log: Pick<Log, 'warn'>): Promise<void> {
  const { rows } = await sql.query<{ available: boolean; loaded: boolean }>(
    `select
       exists (select from pg_available_extensions where name = 'timescaledb') as available,
       exists (select from pg_settings where name = 'timescaledb.disable_load') as loaded`,
  );
  if (!rows[0]?.available) return;
  if (!rows[0].loaded) {
    log.warn(
      { event: 'database.timescaledb-unusable' },
      'TimescaleDB is installed but not in shared_preload_libraries; continuing without it.',
    );
    return;
  }
  try {
    await sql.query('create extension if not exists timescaledb');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    log.warn(
      { event: 'database.timescaledb-unusable' },
      `TimescaleDB is installed but cannot be used (${reason}); continuing without it.`,
    );
  }
}

/** TimescaleDB's own licence allows compression, policies and aggregates. Its Apache build has none of them. */
export async function readStorage(sql: Sql): Promise<Storage> {
  const { rows } = await sql.query<{
    postgresql: string;
    timescaledb: string | null;
    license: string | null;
  }>(
    `select
       split_part(current_setting('server_version'), ' ', 1) as postgresql,
       (select extversion from pg_extension where extname = 'timescaledb') as timescaledb,
       current_setting('timescaledb.license', true) as license`,
  );
  const row = rows[0];
  if (!row) throw new Error('The database did not say its version.');
  return {
    kind:
      row.timescaledb === null
        ? 'postgresql'
        : row.license === 'timescale'
          ? 'timescaledb'
          : 'timescaledb-apache',
    postgresqlVersion: row.postgresql,
    timescaledbVersion: row.timescaledb,
  };
}

/** A line for the log and for people. */
export function describeStorage(storage: Storage): string {
  switch (storage.kind) {
    case 'timescaledb':
      return `TimescaleDB ${storage.timescaledbVersion} on PostgreSQL ${storage.postgresqlVersion}`;
    case 'timescaledb-apache':
      return `TimescaleDB ${storage.timescaledbVersion} (Apache build: no compression, policies or aggregates) on PostgreSQL ${storage.postgresqlVersion}`;
    case 'postgresql':
      return `PostgreSQL ${storage.postgresqlVersion} without TimescaleDB`;
  }
}
