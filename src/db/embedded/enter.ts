import { stateOf, states } from '../errors.ts';
import { StartError } from '../../start-error.ts';
import type { LockOptions } from '../lock-tables.ts';
import { connectionStringOf, type ServerAddress, type RoleLogin } from './address.ts';
import { createScramClient } from '../pg-driver.ts';
import { takeServiceLock, type HeldLock } from './guard.ts';
import { handOver, isHandedOver } from './hand-over.ts';
import { readOrMakeService, readSuperuser } from './secrets.ts';

const lockTimeoutMs = 3_000;

/** The lock, and what the service logs in with. */
export type Entered = { held: HeldLock; service: RoleLogin };

/** Logs in to a server that runs and takes the service's lock. */
export function lockAs(address: ServerAddress, login: RoleLogin): Promise<HeldLock> {
  return takeServiceLock(connectionStringOf(address, login, 'postgres'), lockTimeoutMs);
}

/** The same where the service's role may not be there yet. Throws a StartError. */
export async function lockAsSuperuser(
  dataDir: string,
  address: ServerAddress,
): Promise<{ held: HeldLock; admin: RoleLogin }> {
  const admin = await readSuperuser(dataDir);
  const held = await unlessRefused(lockAs(address, admin));
  if (held === null)
    throw new StartError(
      `DATA_DIR ${dataDir}: its file database-password holds another password than its database has. Put the right one back from a backup.`,
    );
  return { held, admin };
}

/**
 * Logs in as the service's role and takes the lock. The superuser comes in only where something is to
 * be handed over to that role: at the first start, after an upgrade or a restore.
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

/** The role is not there yet, or has another password: a service that runs must not lose its own. */
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

/** Whether a server accepts the service's role; other errors are left to the connection that follows. */
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

/** A role that is not there has a wrong password, too. */
async function unlessRefused<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    const state = stateOf(error);
    if (state === states.invalidPassword || state === states.invalidAuthorization) return null;
    throw error;
  }
}
