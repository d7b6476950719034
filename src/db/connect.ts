import { StartError } from '../start-error.ts';
import { jobSchema, jobTable } from './jobs.ts';
import type { Sql } from './sql.ts';
import { quote } from './why-refused.ts';

/** The oldest major version that is tested; its SQL needs 13. */
const leastMajor = 15;

/** Throws a StartError of one line where this server cannot be used. */
export async function checkServer(sql: Sql, name: string): Promise<void> {
  await checkVersion(sql, name);
  await checkWritable(sql, name);
}

async function checkVersion(sql: Sql, name: string): Promise<void> {
  const { rows } = await sql.query<{ server_version_num: string }>('show server_version_num');
  const major = Math.floor(Number(rows[0]?.server_version_num) / 10_000);
  if (major >= leastMajor) return;
  throw wrong(`${name} is PostgreSQL ${major}; expected ${leastMajor} or later: upgrade it`);
}

async function checkWritable(sql: Sql, name: string): Promise<void> {
  const { rows } = await sql.query<{ standby: boolean; readOnly: boolean; primary: string | null }>(
    `select
       pg_is_in_recovery() as standby,
       current_setting('transaction_read_only')::boolean as "readOnly",
       -- Null for a role that may not see it.
       (select sender_host || ':' || sender_port from pg_stat_wal_receiver) as primary`,
  );
  const { standby, readOnly, primary } = rows[0] ?? {};
  const of = primary ? ` of ${primary}` : '';
  if (standby)
    throw wrong(
      `${name} is a standby${of}, which only reads: name the primary, or an address that always leads there`,
    );
  if (readOnly)
    throw wrong(
      `${name} lets this role only read: set default_transaction_read_only to off for it, its database or the server`,
    );
}

type Rights = {
  role: string;
  database: string;
  lacksTables: boolean;
  lacksSchemas: boolean;
  mayMakeTables: boolean;
  mayMakeSchemas: boolean;
  seesJobs: boolean;
};

/**
 * Throws a StartError of one line where this role may not create what is missing; called before anything is
 * changed. A complete database needs no right to create. `schema`: where the tables are to be.
 */
export async function checkDatabaseRights(sql: Sql, schema: string): Promise<void> {
  const found = await findRights(sql, [schema, jobSchema]);
  const [role, database] = [quote(found.role), quote(found.database)];
  const missing = [
    ...(found.lacksSchemas && !found.mayMakeSchemas ? [`DATABASE ${database}`] : []),
    ...(found.lacksTables && !found.mayMakeTables ? ['SCHEMA public'] : []),
  ];
  const grants = missing.map((what) => `GRANT CREATE ON ${what} TO ${role};`);
  if (missing.length > 0)
    throw wrong(
      `role ${role} may not create in database ${database} what the service needs there: its owner runs ${grants.join(' ')}`,
    );
  // Row security hides the job tables' rows from all but their owner: no job would be found, none added.
  if (!found.seesJobs)
    throw wrong(
      `role ${role} is kept from the jobs of ${jobSchema} by row security: a superuser runs ALTER ROLE ${role} BYPASSRLS;`,
    );
}

/** From the catalogue, which also shows what this role may not use. */
async function findRights(sql: Sql, schemas: string[]): Promise<Rights> {
  const { rows } = await sql.query<Rights>(
    `select
       current_user as role,
       current_database() as database,
       not exists (
         select from pg_class
          where relname = 'migration'
            and relnamespace = (select oid from pg_namespace where nspname = 'public')
       ) as "lacksTables",
       exists (
         select from unnest($1::text[]) as own (name)
          where name not in (select nspname from pg_namespace)
       ) as "lacksSchemas",
       coalesce(
         (select has_schema_privilege(oid, 'create') from pg_namespace where nspname = 'public'),
         false
       ) as "mayMakeTables",
       has_database_privilege(current_database(), 'create') as "mayMakeSchemas",
       not exists (
         select from pg_class
          where relname = '${jobTable}'
            and relnamespace = (select oid from pg_namespace where nspname = '${jobSchema}')
            and row_security_active(oid)
       ) as "seesJobs"`,
    [schemas],
  );
  if (rows[0] === undefined) throw new Error('The database did not say what this role may do.');
  return rows[0];
}

function wrong(what: string): StartError {
  return new StartError(`DATABASE_URL: ${what}${what.endsWith(';') ? '' : '.'}`);
}
