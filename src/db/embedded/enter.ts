import { randomBytes } from 'node:crypto';
import { chown, readFile, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { readOrMakePrivateFile, readPrivateFile } from '../../lib/private-file.ts';
import { StartError } from '../../start-error.ts';
import { refuseEarlier } from '../baseline.ts';
import { stateOf, states } from '../errors.ts';
import { type LockOptions, withTablesLocked } from '../migrate.ts';
import { createScramClient } from '../pg-driver.ts';
import { readSchemaState } from '../schema-state.ts';
import type { Sql } from '../sql.ts';
import {
  adoptPostmaster,
  connectionStringOf,
  createCluster,
  describeMajor,
  embeddedSettings,
  findFreePort,
  findPostmaster,
  inUse,
  type Major,
  majors,
  makeSocketDir,
  readPostmasterFile,
  removeSocketDir,
  renewSocketDir,
  type RoleLogin,
  type ServerAddress,
  socketPort,
  startCluster,
  stopCluster,
  superuser,
} from './cluster.ts';
import { ProgramError, type Programs, runProgram } from './programs.ts';

const lockTimeoutMs = 3_000;

/** The lock, and the login of the service. */
type Entered = { held: HeldLock; service: RoleLogin };

/** Logs in to a running server and takes the service's lock. */
export function lockAs(address: ServerAddress, login: RoleLogin): Promise<HeldLock> {
  return takeServiceLock(connectionStringOf(address, login, 'postgres'), lockTimeoutMs);
}

/** The same as the superuser, for when the service's role may not exist yet. Throws a StartError. */
export async function lockAsSuperuser(
  dataDir: string,
  address: ServerAddress,
): Promise<{ held: HeldLock; admin: RoleLogin }> {
  const admin = await readSuperuser(dataDir);
  const held = await unlessRefused(lockAs(address, admin));
  if (held === null)
    throw new StartError(
      `DATA_DIR ${dataDir}: the password in its file database-password is not its database's. ` +
        'Restore the right file from a backup.',
    );
  return { held, admin };
}

/**
 * Logs in as the service's role and takes the lock. Uses the superuser only if something must be handed over to that
 * role: at the first start, after an upgrade or a restore.
 */
export async function enterAsService(
  dataDir: string,
  address: ServerAddress,
  log: LockOptions['log'],
): Promise<Entered> {
  const service = await readOrMakeService(dataDir);
  const held = await unlessRefused(lockAs(address, service));
  if (held === null) return enterAfterSuperuser(dataDir, address, service, log);
  if (held.heldBy !== null) return { held, service };
  try {
    if (!(await isHandedOver(address, service)))
      await handOver(address, { admin: await readSuperuser(dataDir), service }, log);
    return { held, service };
  } catch (error) {
    await held.client.end();
    throw error;
  }
}

/**
 * The role does not exist yet, or has another password. Takes the superuser's lock first, because a service that runs
 * must not lose its password.
 */
async function enterAfterSuperuser(
  dataDir: string,
  address: ServerAddress,
  service: RoleLogin,
  log: LockOptions['log'],
): Promise<Entered> {
  const { held: first, admin } = await lockAsSuperuser(dataDir, address);
  if (first.heldBy !== null) return { held: first, service };
  try {
    await handOver(address, { admin, service }, log);
  } finally {
    await first.client.end();
  }
  return { held: await lockAs(address, service), service };
}

/** Whether a server accepts the service's role. Other errors are left to the connection that follows. */
export async function canLogIn(connectionString: string): Promise<boolean> {
  const client = createScramClient({ connectionString, connectionTimeoutMillis: 5_000 });
  try {
    const connected = await unlessRefused(client.connect());
    return connected !== null;
  } catch (error) {
    return stateOf(error) !== states.invalidCatalogName;
  } finally {
    await client.end();
  }
}

/** Null if the login is refused. A missing role is reported like a wrong password. */
async function unlessRefused<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    const state = stateOf(error);
    if (state === states.invalidPassword || state === states.invalidAuthorization) return null;
    throw error;
  }
}

/** The advisory lock of the one service that uses an embedded database. It is released when its session ends. */
const serviceLock = 7199;

/** A connection and the moment it ends, because its server or its session is gone. */
export type GuardConnection = { client: pg.Client; ended: Promise<void> };

/** A connection that holds the lock, or the process that holds it instead. */
type HeldLock = (GuardConnection & { heldBy: null }) | { heldBy: string };

/**
 * Connects and takes the lock. A process that was just killed may hold it a moment longer, so this tries again until
 * `timeoutMs` is over.
 */
async function takeServiceLock(connectionString: string, timeoutMs: number): Promise<HeldLock> {
  const client = createScramClient({
    connectionString,
    application_name: `sensorium ${process.pid}`,
    connectionTimeoutMillis: 5_000,
  });
  const ended = new Promise<void>((resolve) => client.once('end', () => resolve()));
  await client.connect();
  // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for another one to end
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const { rows } = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_lock($1) as taken',
      [serviceLock],
    );
    if (rows[0]?.taken) return { client, ended, heldBy: null };
    // oxlint-disable-next-line no-restricted-globals -- the start of a process waits for another one to end
    if (performance.now() > deadline) break;
    await delay(100);
  }
  const { rows } = await client.query<{ name: string }>(
    `select application_name as name
     from pg_locks join pg_stat_activity using (pid)
     where locktype = 'advisory' and classid = 0 and objid = $1 and granted
       and pg_locks.database = (select oid from pg_database where datname = current_database())`,
    [serviceLock],
  );
  await client.end();
  return { heldBy: rows[0]?.name.replace(/^sensorium /, 'process ') ?? 'somebody' };
}

/** The role that the service works as. It owns the service's objects, and has no other rights. */
const serviceRole = 'sensorium_service';

const superuserFile = 'database-password';
const serviceFile = 'service-password';

/** The superuser's password of a data directory; creates one for a new cluster. */
export function readOrMakeSuperuserPassword(dataDir: string): Promise<string> {
  return readOrMakePrivateFile(join(dataDir, superuserFile), makePassword);
}

/**
 * The superuser's login, for backups and for handing over what the service's role does not own yet. Throws a
 * StartError.
 */
export async function readSuperuser(dataDir: string): Promise<RoleLogin> {
  const file = join(dataDir, superuserFile);
  const password = await readPrivateFile(file).catch((error: unknown) => {
    throw unreadable(file, error);
  });
  if (password === null) throw unreadable(file);
  return { role: superuser, password };
}

/**
 * The service's login. If its password was lost, creates one, which `enterAsService` sets. Throws a StartError if it
 * cannot be read.
 */
async function readOrMakeService(dataDir: string): Promise<RoleLogin> {
  const file = join(dataDir, serviceFile);
  try {
    const password = await readOrMakePrivateFile(file, makePassword);
    await giveToOwner(dataDir, file);
    return { role: serviceRole, password };
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** A command run once as root must not leave a file that the service's own user cannot read. */
async function giveToOwner(dataDir: string, file: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await stat(join(dataDir, superuserFile)).catch(() => stat(dataDir));
  if ((await stat(file)).uid !== uid) await chown(file, uid, gid);
}

function unreadable(file: string, cause?: unknown): StartError {
  return new StartError(
    `${file}: cannot be read, and the database beside it cannot be opened without it.`,
    { cause },
  );
}

/** The service's login, or null if it was never created. */
export async function findService(dataDir: string): Promise<RoleLogin | null> {
  const password = await readPrivateFile(join(dataDir, serviceFile));
  return password === null ? null : { role: serviceRole, password };
}

function makePassword(): string {
  return randomBytes(24).toString('hex');
}

const attributes = 'login nosuperuser nocreatedb nocreaterole noreplication nobypassrls';

/**
 * Makes the service's role the owner of its database and of every object there that still belongs to the superuser, as
 * objects created by versions before 0.3.0 or by hand do. Creates the role and the database if they are missing. The
 * next start completes an interrupted handover. Throws a StartError for a database that this program could not migrate
 * afterwards, and leaves it unchanged.
 */
async function handOver(
  address: ServerAddress,
  { admin, service }: { admin: RoleLogin; service: RoleLogin },
  log: LockOptions['log'],
): Promise<void> {
  await withClient(connectionStringOf(address, admin, 'postgres'), async (client) => {
    if (await hasDatabase(client))
      await refuseEarlierAt(connectionStringOf(address, admin, databaseName), log);
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

/** Checks, as the service, that it needs nothing from the superuser. */
async function isHandedOver(address: ServerAddress, service: RoleLogin): Promise<boolean> {
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
    // The database does not exist.
    if (stateOf(error) === states.invalidCatalogName) return false;
    throw error;
  });
}

async function ensureRole(sql: Sql, { role, password }: RoleLogin): Promise<void> {
  const { rowCount } = await sql.query('select from pg_roles where rolname = $1', [role]);
  const verb = rowCount === 0 ? 'create' : 'alter';
  await sql.query(`${verb} role ${role} ${attributes} password ${pg.escapeLiteral(password)}`);
}

/** The database's owner may create schemas, and tables in `public` (pg_database_owner). */
async function ensureDatabase(sql: Sql): Promise<void> {
  await sql.query(
    (await hasDatabase(sql))
      ? `alter database ${databaseName} owner to ${serviceRole}`
      : `create database ${databaseName} owner ${serviceRole}`,
  );
}

async function hasDatabase(sql: Sql): Promise<boolean> {
  const { rowCount } = await sql.query('select from pg_database where datname = $1', [
    databaseName,
  ]);
  return rowCount !== 0;
}

/** Ends sessions that a killed start left behind: they may still lock the table that this reads. */
async function refuseEarlierAt(url: string, log: LockOptions['log']): Promise<void> {
  await withClient(url, async (client) => {
    const { rowCount } = await client.query(
      `select where to_regclass('public.migration') is not null`,
    );
    const tables = rowCount === 0 ? [] : ['public.migration'];
    await withTablesLocked(
      client,
      tables,
      async () => refuseEarlier(await readSchemaState(client)),
      { log },
    );
  });
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

/** The service's own database in an embedded cluster. */
export const databaseName = 'sensorium';

/** Creates an empty cluster whose locale sorts the same on every machine. */
export function createEmbeddedCluster(
  programs: Programs,
  clusterDir: string,
  password: string,
): Promise<void> {
  return createCluster(programs, clusterDir, {
    password,
    locale: ['--locale-provider=builtin', '--locale=C.UTF-8'],
  });
}

/** An object of the database as `alter … owner to` names it. `name` is quoted and includes the schema. */
type OwnedObject = { kind: string; name: string };

/** Our tables in `public`: they record where the other tables are, and whether these are complete. */
const inPublic = ['migration', 'sensorium_schema', 'unfinished_restore'];

/**
 * The service's objects that belong to `role`: its schemas, the job schema of 0.2.0 and 0.3.0, and everything in them.
 * A table's indexes and its columns' sequences follow the table. Objects of extensions are excluded. The search path
 * must be `pg_catalog` alone, so that each name includes its schema.
 */
async function listOwned(sql: Sql, role: string): Promise<OwnedObject[]> {
  const { rows } = await sql.query<OwnedObject>(
    `with owner as (select oid from pg_roles where rolname = $1),
          schema as (
            select oid, nspname, nspowner, true as is_whole
              from pg_namespace
             where nspname = 'graphile_worker' or nspname ~ '^sensorium_\\d+_\\d+_\\d+$'
             union all
            select oid, nspname, nspowner, false from pg_namespace where nspname = 'public'
          ),
          extension as (select classid, objid from pg_depend where deptype = 'e')
     select 'schema' as kind, quote_ident(nspname) as name
       from schema join owner on owner.oid = nspowner
      where is_whole
     union all
     select case relkind when 'S' then 'sequence' when 'v' then 'view' when 'f' then 'foreign table'
                         when 'm' then 'materialized view' when 'c' then 'type' else 'table' end,
            format('%I.%I', nspname, relname)
       from pg_class c
       join owner on owner.oid = relowner
       join schema on schema.oid = relnamespace
      where relkind in ('r', 'p', 'v', 'm', 'S', 'f', 'c')
        and (is_whole or relname = any ($2))
        and not (relkind = 'S' and exists (
              select from pg_depend
               where classid = 'pg_class'::regclass and objid = c.oid and deptype in ('a', 'i')))
        and ('pg_class'::regclass, c.oid) not in (table extension)
     union all
     select 'routine', p.oid::regprocedure::text
       from pg_proc p
       join owner on owner.oid = proowner
       join schema on schema.oid = pronamespace
      where is_whole
        and ('pg_proc'::regclass, p.oid) not in (table extension)
     union all
     select 'type', format('%I.%I', nspname, typname)
       from pg_type t
       join owner on owner.oid = typowner
       join schema on schema.oid = typnamespace
      where typtype in ('d', 'e', 'r') and is_whole
        and ('pg_type'::regclass, t.oid) not in (table extension)
     union all
     select 'statistics', format('%I.%I', nspname, stxname)
       from pg_statistic_ext
       join owner on owner.oid = stxowner
       join schema on schema.oid = stxnamespace
      where is_whole`,
    [role, inPublic],
  );
  return rows;
}

/** Whether a version before 0.3.0 started the server. Node does not support Unix sockets on Windows. */
export function isEarlier({ socketDir }: ServerAddress): boolean {
  return socketDir === null && process.platform !== 'win32';
}

/**
 * Ends the server that a killed service of an earlier version left. It listens at a port, which another user could take
 * when it crashes. Throws a StartError if a service still uses it.
 */
async function endEarlierServer(
  { programs, clusterDir, dataDir }: { programs: Programs; clusterDir: string; dataDir: string },
  address: ServerAddress,
): Promise<void> {
  const { held } = await lockAsSuperuser(dataDir, address);
  if (held.heldBy !== null) throw inUse(dataDir, held.heldBy);
  await stopCluster(programs, clusterDir, 'fast', 60).catch(() =>
    stopCluster(programs, clusterDir, 'immediate', 10),
  );
}

export type Launch = { programs: Programs; clusterDir: string; dataDir: string };

const adoptTimeoutMs = 60_000;
/** Long enough for a crash recovery after heavy writing. */
const startTimeoutSeconds = 120;
const maxLogBytes = 10 * 2 ** 20;

/**
 * Takes over the server that an earlier process left running, or starts one, and returns its address. `wanted`: an
 * address that clients already know.
 */
export async function launch(
  prepared: Launch,
  wanted?: ServerAddress,
): Promise<{ address: ServerAddress; adopted: boolean }> {
  for (let attempt = 1; ; attempt += 1) {
    const left = await readPostmasterFile(prepared.clusterDir);
    const adopted = await adopt(prepared);
    if (adopted) return { address: adopted, adopted: true };
    if (left && !wanted) await removeAddress(prepared, left.address);
    const address = wanted ?? (await makeAddress(prepared));
    try {
      await start(prepared, address);
      return { address, adopted: false };
    } catch (error) {
      if (!wanted) await removeAddress(prepared, address);
      if (!(error instanceof ProgramError)) throw error;
      const said = await readLogEnd(prepared.clusterDir);
      if (attempt < 20 && isPassing(said)) await delay(500);
      else
        throw new StartError([`The database in ${prepared.clusterDir} does not start:`, said], {
          cause: error,
        });
    }
  }
}

async function adopt(prepared: Launch): Promise<ServerAddress | null> {
  const { programs, clusterDir } = prepared;
  if (!(await findPostmaster(clusterDir))) return null;
  const address = await adoptPostmaster(clusterDir, programs.owner, adoptTimeoutMs);
  if (address !== null && !isEarlier(address)) return address;
  if (address !== null) await endEarlierServer(prepared, address);
  // It may have ended meanwhile. If it runs but does not answer, it is replaced.
  else if (await findPostmaster(clusterDir))
    await stopCluster(programs, clusterDir, 'immediate', 10);
  return null;
}

async function start({ programs, clusterDir }: Launch, address: ServerAddress): Promise<void> {
  if (address.socketDir !== null) await renewSocketDir(address.socketDir, programs.owner);
  await trimLog(clusterDir);
  const settings = embeddedSettings();
  const timeoutSeconds = startTimeoutSeconds;
  await startCluster(programs, clusterDir, { settings, address, timeoutSeconds });
}

/** A new address for a server, beside its files if possible. */
export async function makeAddress({
  programs,
  clusterDir,
}: Pick<Launch, 'programs' | 'clusterDir'>): Promise<ServerAddress> {
  if (process.platform === 'win32') return { socketDir: null, port: await findFreePort() };
  const bases = [dirname(clusterDir), tmpdir(), '/tmp'];
  return { socketDir: await makeSocketDir(bases, programs.owner), port: socketPort };
}

/** Removes the address of a server that has ended. */
export async function removeAddress(
  { programs }: Pick<Launch, 'programs'>,
  { socketDir }: ServerAddress,
): Promise<void> {
  if (socketDir !== null) await removeSocketDir(socketDir, programs.owner);
}

/**
 * Throws if another major version wrote the cluster than the programs'. The error names the version that can open it.
 */
export async function checkVersion(
  { programs, clusterDir }: Omit<Launch, 'dataDir'>,
  known: readonly Major[] = majors,
): Promise<void> {
  const written = (await readFile(join(clusterDir, 'PG_VERSION'), 'utf8')).trim();
  const brought = /(\d+)/.exec(await runProgram(programs, 'postgres', ['--version']))?.[1];
  if (written !== brought)
    throw new StartError(
      `The database in ${clusterDir} was written by PostgreSQL ${written}, and this version ` +
        `includes ${brought}: ${describeMajor(written, known)}`,
    );
}

/** The port is still taken, a server is ending, or a killed server's shared memory is not released yet. */
function isPassing(said: string): boolean {
  return /could not bind|Address already in use|already exists|still in use/i.test(said);
}

async function readLogEnd(clusterDir: string): Promise<string> {
  const text = await readFile(join(clusterDir, 'start.log'), 'utf8').catch(() => '');
  return text.trim().split('\n').slice(-5).join('\n');
}

async function trimLog(clusterDir: string): Promise<void> {
  const file = join(clusterDir, 'start.log');
  const found = await stat(file).catch(() => null);
  if (found && found.size > maxLogBytes) await truncate(file);
}
