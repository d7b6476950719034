import pg from 'pg';
import { breakOff } from '../pg-driver.ts';
import { findCurrentSchema } from '../schema-state.ts';
import type { Sql } from '../sql.ts';
import { optionsOf, sessionFormats } from '../types.ts';

const settings = {
  statement_timeout: 0,
  lock_timeout: 0,
  idle_in_transaction_session_timeout: 0,
  ...sessionFormats,
};

/** A connection of its own for as long as `work` takes. */
export async function withSession<T>(
  connectionString: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({
    connectionString,
    application_name: 'sensorium portable copy',
    options: optionsOf(settings),
  });
  // A lost connection fails the statement under way; without a listener it would end the process too.
  client.on('error', () => undefined);
  await client.connect();
  try {
    const result = await work(client);
    await client.end();
    return result;
  } catch (error) {
    breakOff(client);
    throw error;
  }
}

/** Has a session find the tables of whatever version made them: 0.1.0 had them in `public`. */
export async function findTables(sql: Sql): Promise<void> {
  const schema = await findCurrentSchema(sql);
  const path = schema === null ? 'public' : `${pg.escapeIdentifier(schema.name)}, public`;
  await sql.query(`set search_path to ${path}`);
}
