import pg from 'pg';
import {
  ask,
  isPostgres,
  nameOfPlace,
  recognise,
  type ServerAnswer,
  type ServerPlace,
  sslRequest,
  whyUnreachable,
} from '../lib/servers.ts';
import { codeOf, messageOf } from '../lib/thrown.ts';
import { StartError } from '../start-error.ts';
import { isUnavailable, quote, whyRefused } from './errors.ts';
import { optionsOf, sessionFormats, type Sql } from './sql.ts';

/** Time for all attempts of one start: an error must be reported within 10 s. */
const timeoutMs = 4_500;
/** The least time for the second attempt. */
const leastMs = 1_500;

/**
 * The first connection to a database. A wrong address, or a server that is not usable, is thrown as a
 * StartError of one line, which never contains the password; one that may be there later, as one that `mayPass`.
 */
export async function connectFirst(connectionString: string): Promise<pg.Client> {
  // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for a server
  const startedMs = performance.now();
  await askWhoIsThere(connectionString);
  // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for a server
  const leftMs = timeoutMs - (performance.now() - startedMs);
  const client = makeClient(connectionString, Math.max(leastMs, Math.round(leftMs)));
  // A lost connection fails the query under way; without a listener it would end the process too.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    const why = whyRefused(error, client, nameOfPlace(placeOf(client)));
    throw notReached(why, { cause: error, mayPass: isUnavailable(error) });
  }
}

/** Before the driver connects: its errors for other protocols depend on what the other side sends. */
async function askWhoIsThere(connectionString: string): Promise<void> {
  const client = makeClient(connectionString, timeoutMs);
  // With TLS from the first byte nothing can be asked without it.
  if ('sslNegotiation' in client && client.sslNegotiation === 'direct') return;
  const place = placeOf(client);
  const answer = await ask(place, sslRequest, { timeoutMs: timeoutMs - leastMs });
  if (answer.kind === 'failed') {
    const { error } = answer;
    const what = `${whyUnreachable(error, place)}: start the database, or correct host and port`;
    // All but a socket that this user may not use. A name that nobody knows may be one of a container that is not there yet.
    throw notReached(what, { cause: error, mayPass: codeOf(error) !== 'EACCES' });
  }
  if (!isPostgres(answer)) {
    const what = whatIsThere(answer, nameOfPlace(place));
    // What says nothing may be a server that hangs, or a proxy without a server behind it.
    const mayPass = answer.kind !== 'said';
    throw notReached(`expected PostgreSQL, but ${what}: correct host and port`, { mayPass });
  }
}

function whatIsThere(answer: ServerAnswer, name: string): string {
  switch (answer.kind) {
    case 'said':
      return `at ${name} is ${recognise(answer.bytes)}`;
    case 'closed':
      return `${name} closes the connection without a word`;
    case 'silent':
    case 'failed':
      return `${name} accepts the connection and says nothing`;
  }
}

function makeClient(connectionString: string, connectionTimeoutMillis: number): pg.Client {
  try {
    const options = optionsOf(sessionFormats);
    return new pg.Client({ connectionString, connectionTimeoutMillis, options });
  } catch (error) {
    // Such as an sslrootcert file that is missing.
    throw notReached(`it cannot be used (${messageOf(error)})`, { cause: error });
  }
}

function placeOf({ host, port }: pg.Client): ServerPlace {
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
}

function notReached(what: string, options?: { cause?: unknown; mayPass?: boolean }): StartError {
  return new StartError(`DATABASE_URL: ${what}.`, options);
}

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
  throw unfit(`${name} is PostgreSQL ${major}; expected ${leastMajor} or later: upgrade it`);
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
    throw unfit(
      `${name} is a standby${of}, which only reads: name the primary, or an address that always leads there`,
    );
  if (readOnly)
    throw unfit(
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
};

/**
 * Throws a StartError of one line where this role may not create what is missing; called before anything is
 * changed. A complete database needs no right to create. `schema`: where the tables are to be.
 */
export async function checkDatabaseRights(sql: Sql, schema: string): Promise<void> {
  const found = await findRights(sql, schema);
  const [role, database] = [quote(found.role), quote(found.database)];
  const missing = [
    ...(found.lacksSchemas && !found.mayMakeSchemas ? [`DATABASE ${database}`] : []),
    ...(found.lacksTables && !found.mayMakeTables ? ['SCHEMA public'] : []),
  ];
  const grants = missing.map((what) => `GRANT CREATE ON ${what} TO ${role};`);
  if (missing.length > 0)
    throw unfit(
      `role ${role} may not create in database ${database} what the service needs there: its owner runs ${grants.join(' ')}`,
    );
}

/** From the catalogue, which also shows what this role may not use. */
async function findRights(sql: Sql, schema: string): Promise<Rights> {
  const { rows } = await sql.query<Rights>(
    `select
       current_user as role,
       current_database() as database,
       not exists (
         select from pg_class
          where relname = 'migration'
            and relnamespace = (select oid from pg_namespace where nspname = 'public')
       ) as "lacksTables",
       not exists (select from pg_namespace where nspname = $1) as "lacksSchemas",
       coalesce(
         (select has_schema_privilege(oid, 'create') from pg_namespace where nspname = 'public'),
         false
       ) as "mayMakeTables",
       has_database_privilege(current_database(), 'create') as "mayMakeSchemas"`,
    [schema],
  );
  if (rows[0] === undefined) throw new Error('The database did not say what this role may do.');
  return rows[0];
}

function unfit(what: string): StartError {
  return new StartError(`DATABASE_URL: ${what}${what.endsWith(';') ? '' : '.'}`);
}
