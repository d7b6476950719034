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
 * Opens the first connection to a database. Throws a StartError of one line, which never contains the password, for a
 * wrong address or an unusable server. If the problem may be temporary, the error has `mayPass`.
 */
export async function connectFirst(connectionString: string): Promise<pg.Client> {
  // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for a server
  const startedMs = performance.now();
  await askWhoIsThere(connectionString);
  // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for a server
  const leftMs = timeoutMs - (performance.now() - startedMs);
  const client = makeClient(connectionString, Math.max(leastMs, Math.round(leftMs)));
  // A lost connection fails the query under way. Without a listener it would end the process too.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return client;
  } catch (error) {
    const why = whyRefused(error, client, nameOfPlace(placeOf(client)));
    throw notReached(why, { cause: error, mayPass: isUnavailable(error) });
  }
}

/**
 * Checks what answers before the driver connects. The driver's errors for other protocols depend on what the other side
 * sends.
 */
async function askWhoIsThere(connectionString: string): Promise<void> {
  const client = makeClient(connectionString, timeoutMs);
  // With direct TLS negotiation there is nothing to ask in plain text.
  if ('sslNegotiation' in client && client.sslNegotiation === 'direct') return;
  const place = placeOf(client);
  const answer = await ask(place, sslRequest, { timeoutMs: timeoutMs - leastMs });
  if (answer.kind === 'failed') {
    const { error } = answer;
    const what = `${whyUnreachable(error, place)}: start the database, or correct host and port`;
    // May pass, except for a socket that this user may not use. An unknown name may be that of a container that is not
    // up yet.
    throw notReached(what, { cause: error, mayPass: codeOf(error) !== 'EACCES' });
  }
  if (!isPostgres(answer)) {
    const what = whatIsThere(answer, nameOfPlace(place));
    // A server that says nothing may hang, or be a proxy without a server behind it.
    const mayPass = answer.kind !== 'said';
    throw notReached(`expected PostgreSQL, but ${what}: correct host and port`, { mayPass });
  }
}

function whatIsThere(answer: ServerAnswer, name: string): string {
  switch (answer.kind) {
    case 'said':
      return `at ${name} is ${recognise(answer.bytes)}`;
    case 'closed':
      return `${name} closes the connection without an answer`;
    case 'silent':
    case 'failed':
      return `${name} accepts the connection but does not answer`;
  }
}

function makeClient(connectionString: string, connectionTimeoutMillis: number): pg.Client {
  try {
    const options = optionsOf(sessionFormats);
    return new pg.Client({ connectionString, connectionTimeoutMillis, options });
  } catch (error) {
    // For example an sslrootcert file that is missing.
    throw notReached(`it cannot be used (${messageOf(error)})`, { cause: error });
  }
}

function placeOf({ host, port }: pg.Client): ServerPlace {
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
}

function notReached(what: string, options?: { cause?: unknown; mayPass?: boolean }): StartError {
  return new StartError(`DATABASE_URL: ${what}.`, options);
}

/** The oldest major version that is tested. The SQL needs 13. */
const leastMajor = 15;

/** Throws a StartError of one line if the service cannot use this server. */
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
      `${name} is a read-only standby${of}: name the primary, or an address that always leads to it`,
    );
  if (readOnly)
    throw unfit(
      `${name} allows this role only to read: set default_transaction_read_only to off for it, ` +
        'its database or the server',
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
 * Throws a StartError of one line if this role may not create what is missing. Call it before anything is changed. A
 * complete database needs no right to create. `schema`: where the tables belong.
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
      `role ${role} may not create what the service needs in database ${database}: its owner ` +
        `runs ${grants.join(' ')}`,
    );
}

/** Reads the catalog, which also lists what this role may not use. */
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
