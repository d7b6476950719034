import { LRUCache } from 'lru-cache';
import type { Clock } from '../lib/clock-readings.ts';
import { coalesce } from '../lib/coalesce.ts';
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

/** What a device shows: its uuid and its token. `address`: where it comes from, where that is known. */
type DeviceCredentials = { username: string; password: string; address?: string | undefined };

type DeviceAuthenticatorDeps = {
  db: Sql;
  /** What tokens are derived from, newest first. */
  keys: readonly Buffer[];
  /** The secrets of these keys, in the same order. */
  secretIds: readonly string[];
  bus: Bus;
  /** Whether the operator has shut the account out, as far as this process knows. */
  isDisabled?: (accountId: number) => boolean;
  clock: Clock;
  /** Told of each login. Absent: nobody is. */
  watch?: LoginWatch;
  /** Devices whose token version is remembered. */
  maxRemembered?: number;
};

export type DeviceAuthenticator = {
  /**
   * Null when the credentials open nothing. No query once the device is known. Rejects with
   * `unavailable` when the store is away and the answer is not known here.
   */
  authenticateDevice(credentials: DeviceCredentials): Promise<DeviceIdentity | null>;
  /** Whether the credentials that let the device in still do; asks the database. */
  isStillAllowed(device: DeviceIdentity, credentials: DeviceCredentials): Promise<boolean>;
  close(): void;
};

/** A wrong token costs a query at most this often per device. */
const refusalMs = 1_000;
const maxRefusals = 10_000;
/** Tokens before the present ones that are still told from wrong ones. */
const retiredVersions = 8;

/**
 * What is known of a device. `token`: its only one, remembered with the second login. Over HTTP each request
 * is a login, and deriving the token costs more than the rest of it.
 */
type Known = { readonly access: Access; token: Buffer | null };

/** The token that let a device in: of which version, and of which secret. */
type Opened = { which: 'newest' | 'previous'; secretId: string };

type Opening = Omit<Access, 'deviceId' | 'accountId'>;

const ofNoSecret = { secretId: '', newestSecretId: null };

/** A device showed a token of this secret, which is another than before. */
type Shown = { deviceId: number; secretId: string };

/** Why nothing was opened; `unknown`: the uuid is no device's now, or its account is disabled. */
type Refusal = { reason: 'wrong-token' | 'retired-token' | 'unknown'; accountId?: number };

/**
 * Checks device tokens by arithmetic on a remembered version number. The version is forgotten when
 * the bus tells of a change, or that it may have missed one.
 */
export function createDeviceAuthenticator(deps: DeviceAuthenticatorDeps): DeviceAuthenticator {
  const { db, keys, secretIds, bus, clock, maxRemembered = 100_000 } = deps;
  const { isDisabled = () => false, watch } = deps;
  const known = new LRUCache<string, Known>({ max: maxRemembered });
  const refusals = new LRUCache<string, Refusal & { untilTs: number }>({ max: maxRefusals });
  const finder = createAccessFinder(db, (access) => {
    known.set(access.uuid, { access, token: null });
  });
  // After a change of the secret ten thousand devices may come with their new tokens at once.
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
      // With another token beside it, its use retires that one.
      if (opened && !access.previous && opened.secretId === access.secretId)
        remembered.token = bytesOfToken(credentials.password);
      if (opened) return letIn(access, opened);
    }
    const before = refusals.get(uuid);
    if (before && before.untilTs > clock()) return refuse(before);

    const access = await finder.find(uuid);
    // A device that does not exist costs the same arithmetic as one that does.
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

  /** A new token was used: from now on the one before it opens nothing, and closes what it opened. */
  async function retire(access: Access, { which, secretId }: Opened): Promise<void> {
    const { deviceId, uuid } = access;
    try {
      if (secretId !== access.secretId) await noted.find({ deviceId, secretId });
      const retired =
        which === 'newest' && access.previous && (await retirePreviousToken(db, access, clock()));
      if (retired || secretId !== access.secretId) bus.publish('access', { deviceId, uuid });
    } catch (error) {
      // The token is right, whatever the store does: its next use retires the old one.
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
 * Which of the device's tokens was shown; null when none that is accepted. Once a device has shown a token of the
 * newest secret, those of the secret before open nothing any more.
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

/** Whether it is one of the device's tokens before those that are accepted. */
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
