import pg from 'pg';
import { stateOf, states } from '../errors.ts';
import { withTablesLocked, type LockOptions } from '../lock-tables.ts';
import type { Sql } from '../sql.ts';
import { connectionStringOf, type ServerAddress, type RoleLogin } from './address.ts';
import { createScramClient } from '../pg-driver.ts';
import { superuser } from './cluster.ts';
import { databaseName } from './make.ts';
import { listOwned } from './owned-objects.ts';
import { serviceRole } from './secrets.ts';

const attributes = 'login nosuperuser nocreatedb nocreaterole noreplication nobypassrls';

/**
 * Gives the service's role what is the service's: its database, and every object there that is still
 * the superuser's, as versions before 0.3.0 and whoever works as the superuser make them. Makes role
 * and database where they are missing. What is interrupted is done by the next start.
 */
export async function handOver(
  address: ServerAddress,
  { admin, service }: { admin: RoleLogin; service: RoleLogin },
  log: LockOptions['log'],
): Promise<void> {
  await withClient(connectionStringOf(address, admin, 'postgres'), async (client) => {
    await ensureRole(client, service);
    await ensureDatabase(client);
  });
  await withClient(connectionStringOf(address, admin, databaseName), async (client) => {
    await client.query('set search_path to pg_catalog');
    const objects = await listOwned(client, superuser);
    if (objects.length === 0) return;
    const tables = objects.filter(({ kind }) => kind === 'table').map(({ name }) => name);
    const give = objects.map(({ kind, name }) => `alter ${kind} ${name} owner to ${serviceRole}`);
    await withTablesLocked(client, tables, () => runAll(client, give), { log });
  });
}

/** Asked as the service: whether it needs nothing from the superuser. */
export async function isHandedOver(address: ServerAddress, service: RoleLogin): Promise<boolean> {
  const url = connectionStringOf(address, service, databaseName);
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ done: boolean }>(
      `select pg_get_userbyid(datdba) = current_user
              and not (rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls)
              as done
         from pg_database, pg_roles
        where datname = current_database() and rolname = current_user`,
    );
    await client.query('set search_path to pg_catalog');
    return rows[0]?.done === true && (await listOwned(client, superuser)).length === 0;
  }).catch((error: unknown) => {
    // The database is not there.
    if (stateOf(error) === states.invalidCatalogName) return false;
    throw error;
  });
}

async function ensureRole(sql: Sql, { role, password }: RoleLogin): Promise<void> {
  const { rowCount } = await sql.query('select from pg_roles where rolname = $1', [role]);
  const verb = rowCount === 0 ? 'create' : 'alter';
  await sql.query(`${verb} role ${role} ${attributes} password ${pg.escapeLiteral(password)}`);
}

/** Its owner may make schemas, and tables in `public` (pg_database_owner). */
async function ensureDatabase(sql: Sql): Promise<void> {
  const { rowCount } = await sql.query('select from pg_database where datname = $1', [
    databaseName,
  ]);
  await sql.query(
    rowCount === 0
      ? `create database ${databaseName} owner ${serviceRole}`
      : `alter database ${databaseName} owner to ${serviceRole}`,
  );
}

async function runAll(client: pg.Client, statements: string[]): Promise<void> {
  await client.query(statements.join(';\n'));
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = createScramClient({
    connectionString: url,
    application_name: `sensorium ${process.pid}`,
    connectionTimeoutMillis: 5_000,
  });
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end();
  }
}
