import type { Sql } from '../db/sql.ts';
import type { StreamPosition } from './position.ts';

/** Everything that is committed now. */
export async function readPosition(sql: Sql): Promise<StreamPosition> {
  const { rows } = await sql.query<StreamPosition>({
    name: 'stream-position',
    text: `
      select pg_current_snapshot()::text as snapshot,
             (select to_hex(system_identifier) from pg_control_system())
               || to_hex((select oid::bigint from pg_database where datname = current_database()))
               as server,
             trunc(extract(epoch from clock_timestamp()) * 1000)::bigint as ts`,
  });
  if (!rows[0]) throw new Error('The database did not say what is committed.');
  return rows[0];
}
