import { LRUCache } from 'lru-cache';
import type { Clock } from '../lib/clock-readings.ts';
import { coalesce } from '../lib/coalesce.ts';
import { atMost } from '../lib/lru.ts';
import { isUuid } from '../lib/text.ts';
import type { Bus } from '../bus/bus.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import {
  type Access,
  bytesOfToken,
  createAccessFinder,
  findTokenKey,
  isSameToken,
  isToken,
  noteTokenSecrets,
  retirePreviousToken,
} from './tokens.ts';
import type { LoginWatch } from './refused-logins.ts';

/** What a device sends: its uuid and its token. `address`: where it connects from, if that is known. */
type DeviceCredentials = { username: string; password: string; address?: string | undefined };

type DeviceAuthenticatorDeps = {
  db: Sql;
  /** The keys that tokens are derived from, newest first. */
  keys: readonly Buffer[];
  /** The identifiers of the secrets of these keys, in the same order. */
  secretIds: readonly string[];
  bus: Bus;
  /** Whether the operator has disabled the account, as far as this process knows. */
  isDisabled?: (accountId: number) => boolean;
  clock: Clock;
  /** Notified of each login. */
  watch?: LoginWatch;
  /** How many devices' token versions to cache. */
  maxRemembered?: number;
};

export type DeviceAuthenticator = {
  /**
   * Null if the credentials are not valid. Needs no query once the device is cached. Rejects with `unavailable` if the
   * database is unreachable and the answer is not cached.
   */
  authenticateDevice(credentials: DeviceCredentials): Promise<DeviceIdentity | null>;
  /** Whether credentials that were accepted still are; always asks the database. */
  isStillAllowed(device: DeviceIdentity, credentials: DeviceCredentials): Promise<boolean>;
  close(): void;
};

/** A wrong token causes at most one query in this time for each device. */
const refusalMs = 1_000;
const maxRefusals = 10_000;
/** How many retired versions are recognised, to tell a retired token from a wrong one. */
const retiredVersions = 8;

/**
 * What is cached of a device. `token`: its only valid token, cached from the second login on. Over HTTP each request is
 * a login, and deriving the token costs more than the rest of it.
 */
type Known = { readonly access: Access; token: Buffer | null };

/** The version and secret of an accepted token. */
type Opened = { which: 'newest' | 'previous'; secretId: string };

type Opening = Omit<Access, 'deviceId' | 'accountId'>;

const ofNoSecret = { secretId: '', newestSecretId: null };

/** A device used a token of this secret, and one of another secret before. */
type Shown = { deviceId: number; secretId: string };

/** Why credentials were refused. `unknown`: no device has this uuid now, or its account is disabled. */
type Refusal = { reason: 'wrong-token' | 'retired-token' | 'unknown'; accountId?: number };

/**
 * Checks device tokens by computation from a cached version number. The cache drops a version when the bus announces a
 * change, or may have missed one.
 */
export function createDeviceAuthenticator(deps: DeviceAuthenticatorDeps): DeviceAuthenticator {
  const { db, keys, secretIds, bus, clock, maxRemembered = 100_000 } = deps;
  const { isDisabled = () => false, watch } = deps;
  const known = new LRUCache<string, Known>(atMost(maxRemembered));
  const refusals = new LRUCache<string, Refusal & { untilTs: number }>(atMost(maxRefusals));
  const finder = createAccessFinder(db, (access) => {
    known.set(access.uuid, { access, token: null });
  });
  // After a change of the secret, ten thousand devices may use their new tokens at once.
  const noted = coalesce({
    load: async (shown: Shown[]) => {
      await noteTokenSecrets(db, shown);
      return new Map<Shown, true>();
    },
  });

  const unsubscribe = [
    bus.subscribe('access', ({ uuid }) => forget(uuid)),
    bus.subscribe('resync', () => {
      known.clear();
      refusals.clear();
      finder.invalidate();
    }),
  ];

  function forget(uuid: string): void {
    known.delete(uuid);
    refusals.delete(uuid);
    finder.invalidate(uuid);
  }

  async function authenticateDevice(credentials: DeviceCredentials) {
    const uuid = credentials.username.toLowerCase();
    const remembered = known.get(uuid);
    if (!remembered && !isUuid(uuid)) return null;
    const refuse = ({ reason, accountId }: Refusal) => {
      watch?.refused({ uuid, accountId, reason, address: credentials.address });
      return null;
    };
    if (remembered) {
      const { access, token } = remembered;
      if (isDisabled(access.accountId)) return refuse({ reason: 'unknown' });
      if (token && isSameToken(token, credentials.password))
        return letIn(access, { which: 'newest', secretId: access.secretId });
      const opened = openedBy(access, credentials);
      // Cache only a token that is the only valid one: otherwise its use must retire the other.
      if (opened && !access.previous && opened.secretId === access.secretId)
        remembered.token = bytesOfToken(credentials.password);
      if (opened) return letIn(access, opened);
    }
    const before = refusals.get(uuid);
    if (before && before.untilTs > clock()) return refuse(before);

    const access = await finder.find(uuid);
    // An unknown device costs the same computation as a known one.
    const shown = access ?? { uuid, version: 0, previous: false, ...ofNoSecret };
    const opened = openedBy(shown, credentials);
    if (access && opened) return letIn(access, opened);
    const isOld = wasToken(keys, shown, credentials);
    const refusal: Refusal = access
      ? { reason: isOld ? 'retired-token' : 'wrong-token', accountId: access.accountId }
      : { reason: 'unknown' };
    refusals.set(uuid, { ...refusal, untilTs: clock() + refusalMs });
    return refuse(refusal);
  }

  function letIn(
    access: Access,
    { which, secretId }: Opened,
  ): DeviceIdentity | Promise<DeviceIdentity> {
    const { deviceId, uuid, accountId } = access;
    watch?.letIn(access);
    const identity = { deviceId, uuid, accountId };
    const retires = which === 'newest' && access.previous;
    if (!retires && secretId === access.secretId) return identity;
    return retire(access, { which, secretId }).then(() => identity);
  }

  /** The device has used its new token: retires the previous one, and closes the connections that it opened. */
  async function retire(access: Access, { which, secretId }: Opened): Promise<void> {
    const { deviceId, uuid } = access;
    try {
      if (secretId !== access.secretId) await noted.find({ deviceId, secretId });
      const retired =
        which === 'newest' && access.previous && (await retirePreviousToken(db, access, clock()));
      if (retired || secretId !== access.secretId) bus.publish('access', { deviceId, uuid });
    } catch (error) {
      // The token is valid even if the database is unreachable; its next use retires the old one.
      if (!(error instanceof DomainError && error.code === 'unavailable')) throw error;
    }
  }

  async function isStillAllowed(device: DeviceIdentity, credentials: DeviceCredentials) {
    const access = await finder.find(device.uuid);
    if (access?.deviceId !== device.deviceId) return false;
    return openedBy(access, credentials) !== null;
  }

  function openedBy(access: Opening, credentials: DeviceCredentials): Opened | null {
    return whichToken({ keys, secretIds }, access, credentials);
  }

  return {
    authenticateDevice,
    isStillAllowed,
    close: () => unsubscribe.forEach((end) => end()),
  };
}

/**
 * Which of the device's tokens was used; null if it is not an accepted one. Once a device has used a token of the
 * newest secret, tokens of the previous secret are no longer accepted.
 */
function whichToken(
  { keys, secretIds }: Pick<DeviceAuthenticatorDeps, 'keys' | 'secretIds'>,
  access: Opening,
  { password }: DeviceCredentials,
): Opened | null {
  const { uuid, version, previous } = access;
  const isMoved = access.secretId === access.newestSecretId;
  const find = (which: Opened['which'], ofVersion: number): Opened | null => {
    const secretId = secretIds[findTokenKey(keys, uuid, ofVersion, password)];
    if (secretId === undefined || (isMoved && secretId !== access.secretId)) return null;
    return { which, secretId };
  };
  return find('newest', version) ?? (previous ? find('previous', version - 1) : null);
}

/** Whether the token is one of the device's earlier ones. */
function wasToken(
  keys: readonly Buffer[],
  { uuid, version }: Pick<Access, 'uuid' | 'version'>,
  { password }: DeviceCredentials,
): boolean {
  let was = false;
  for (let back = 1; back <= retiredVersions; back += 1)
    if (isToken(keys, uuid, version - back, password)) was = version - back >= 1;
  return was;
}

/** Adds the connector to the devices that `find` returns. */
export function atConnector<T>(
  connectorId: number,
  find: (wanted: T) => Promise<DeviceIdentity | null>,
): (wanted: T) => Promise<DeviceIdentity | null> {
  return async (wanted) => {
    const device = await find(wanted);
    return device && { ...device, connectorId };
  };
}
