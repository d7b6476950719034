import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Actor, doneBy, entryValues, insertEntryFrom } from '../audit/audit.ts';
import type { Bus } from '../bus/bus.ts';
import type { DeviceIdentity, Downlink } from '../contract/uplink.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { DeviceParams } from '../http/schema.ts';
import { coalesce } from '../lib/coalesce.ts';
import { isUuid } from '../lib/text.ts';
import { noSuchDevice, RotatedToken, TokenRotation } from './schema.ts';
import type { Clock } from '../lib/clock-readings.ts';
import { atMost } from '../lib/lru.ts';

// 192 bits cannot be guessed, and 32 characters leave room in the 256 bytes that small MQTT clients reserve for the
// whole CONNECT packet.
const tokenBytes = 24;
const tokenLength = 32;

/**
 * A device's token, 32 URL-safe characters. It is derived from its uuid (lower case) and the token's version with the
 * newest key, so that no credential is ever stored.
 */
export function deriveToken(keys: readonly Buffer[], uuid: string, version: number): string {
  const [newest] = keys;
  if (!newest) throw new Error('there is no key for device tokens');
  return derive(newest, uuid, version);
}

/** Whether `token` belongs to the device at this version under any of the keys; in constant time. */
export function isToken(
  keys: readonly Buffer[],
  uuid: string,
  version: number,
  token: string,
): boolean {
  return findTokenKey(keys, uuid, version, token) >= 0;
}

/** The index of the key under which `token` belongs to the device at this version; -1 if none. In constant time. */
export function findTokenKey(
  keys: readonly Buffer[],
  uuid: string,
  version: number,
  token: string,
): number {
  const given = Buffer.alloc(tokenLength);
  given.write(token);
  let found = -1;
  for (const [place, key] of keys.entries()) {
    if (timingSafeEqual(Buffer.from(derive(key, uuid, version)), given)) found = place;
  }
  return token.length === tokenLength ? found : -1;
}

/** A token that `isToken` accepted, for `isSameToken` to compare. */
export function bytesOfToken(token: string): Buffer {
  // A buffer of its own: a slice of Node's pool would keep 8 KiB alive.
  const bytes = Buffer.alloc(tokenLength);
  bytes.write(token);
  return bytes;
}

/** Whether `token` is the known one; in constant time. */
export function isSameToken(known: Buffer, token: string): boolean {
  if (token.length !== tokenLength) return false;
  const given = Buffer.allocUnsafe(tokenLength);
  return given.write(token) === tokenLength && timingSafeEqual(known, given);
}

function derive(key: Buffer, uuid: string, version: number): string {
  const digest = createHmac('sha256', objectOf(key)).update(`${uuid}:${version}`).digest();
  return digest.subarray(0, tokenBytes).toString('base64url');
}

const objects = new WeakMap<Buffer, KeyObject>();

/** Cached: from a Buffer, each digest would make its own key object, which takes several times as long. */
function objectOf(key: Buffer): KeyObject {
  const known = objects.get(key);
  if (known) return known;
  const made = createSecretKey(key);
  objects.set(key, made);
  return made;
}

/**
 * The version of a device's token. `previous`: the previous token is accepted too. `secretId`: the secret of the token
 * that it used last. `newestSecretId`: the newest secret that the database knows; null if it knows none.
 */
export type Access = {
  deviceId: number;
  uuid: string;
  accountId: number;
  version: number;
  previous: boolean;
  secretId: string;
  newestSecretId: string | null;
};

type AccessRow = {
  id: number;
  uuid: string;
  account_id: number;
  token_version: number;
  previous_token_accepted: boolean;
  token_secret: string;
  newest_secret: string | null;
};

/** By uuid; missing are devices that do not exist, or whose account is disabled. */
async function listAccess(db: Sql, uuids: string[]): Promise<Map<string, Access>> {
  const { rows } = await db.query<AccessRow>({
    name: 'devices-access',
    text: `
      select d.id, d.uuid, d.account_id, d.token_version, d.previous_token_accepted, d.token_secret,
             (select left(value, 8) from secret_check order by place limit 1) as newest_secret
        from device d
        join account a on a.id = d.account_id
       where d.uuid = any($1::uuid[]) and a.disabled_at is null`,
    values: [uuids],
  });
  return new Map(
    rows.map((row) => [
      row.uuid,
      {
        deviceId: row.id,
        uuid: row.uuid,
        accountId: row.account_id,
        version: row.token_version,
        previous: row.previous_token_accepted,
        secretId: row.token_secret,
        newestSecretId: row.newest_secret,
      },
    ]),
  );
}

/** Returns whether this call retired it. */
export async function retirePreviousToken(
  db: Sql,
  { deviceId, uuid, version }: Pick<Access, 'deviceId' | 'uuid' | 'version'>,
  ts: number,
): Promise<boolean> {
  const actor = { by: 'device', sessionId: null, address: null } as const;
  const details = { deviceAuthUuid: uuid };
  const { rowCount } = await db.query(
    `
      with retired as (
        update device
           set previous_token_accepted = false
         where id = $1 and token_version = $2 and previous_token_accepted
           and account_id is not null
        returning account_id
      ), audited as (${insertEntryFrom('retired', 3)})
      select from retired`,
    [deviceId, version, ...entryValues({ kind: 'device-token-retired', actor, ts, details })],
  );
  return rowCount === 1;
}

/** Records the secret of the tokens that devices used; if a device is given twice, the last one counts. */
export async function noteTokenSecrets(
  db: Sql,
  shown: readonly { deviceId: number; secretId: string }[],
): Promise<void> {
  const last = new Map(shown.map(({ deviceId, secretId }) => [deviceId, secretId]));
  await db.query({
    name: 'devices-note-token-secrets',
    text: `
      update device d
         set token_secret = n.secret_id
        from unnest($1::bigint[], $2::text[]) as n (device_id, secret_id)
       where d.id = n.device_id and d.token_secret <> n.secret_id`,
    values: [[...last.keys()], [...last.values()]],
  });
}

type TokenRotationInput = {
  accountId: number;
  uuid: string;
  /** Whether the previous token works until the new one is first used. */
  keepPrevious: boolean;
  /** The identifier of the new token's secret. */
  secretId: string;
  actor: Actor;
  ts: number;
};

/** The new version; null if the account has no such device. */
async function raiseTokenVersion(
  db: Sql,
  { accountId, uuid, keepPrevious, secretId, actor, ts }: TokenRotationInput,
): Promise<{ deviceId: number; version: number } | null> {
  const kind = keepPrevious ? 'device-token-rotated' : 'device-token-revoked';
  const details = { deviceAuthUuid: uuid };
  const { rows } = await db.query<{ id: number; token_version: number }>(
    `
      with raised as (
        update device
           set token_version = token_version + 1, previous_token_accepted = $3,
               token_secret = case when $3 then token_secret else $4 end
         where uuid = $2 and account_id = $1
        returning id, account_id, token_version
      ), audited as (${insertEntryFrom('raised', 5)})
      select id, token_version from raised`,
    [accountId, uuid, keepPrevious, secretId, ...entryValues({ kind, actor, ts, details })],
  );
  const [row] = rows;
  return row ? { deviceId: row.id, version: row.token_version } : null;
}

// At most 50 queries a second, however many devices connect.
const pauseMs = 20;

type AccessFinder = {
  /** The current version of the device's token, from the database; null if there is no such device. */
  find(uuid: string): Promise<Access | null>;
  /** Look-ups under way for the device (without one, for any device) start again. */
  invalidate(uuid?: string): void;
};

/** Looks up the credentials of devices; ten thousand at once take a few queries. */
export function createAccessFinder(db: Sql, onFound: (access: Access) => void): AccessFinder {
  const lookUps = coalesce({ load: (uuids: string[]) => listAccess(db, uuids), pauseMs });
  const underWay = new Map<string, Set<{ stale: boolean }>>();

  async function find(uuid: string): Promise<Access | null> {
    const mark = { stale: false };
    const marks = underWay.get(uuid) ?? new Set();
    underWay.set(uuid, marks.add(mark));
    try {
      for (;;) {
        mark.stale = false;
        const access = await lookUps.find(uuid);
        // The answer may be older than the change: it must neither be used nor cached.
        if (mark.stale) continue;
        if (access) onFound(access);
        return access;
      }
    } finally {
      marks.delete(mark);
      if (marks.size === 0) underWay.delete(uuid);
    }
  }

  function invalidate(uuid?: string): void {
    const stale = uuid === undefined ? [...underWay.values()] : [underWay.get(uuid) ?? []];
    for (const marks of stale) for (const mark of marks) mark.stale = true;
  }

  return { find, invalidate };
}

type DeviceIdentifier = {
  /**
   * The device with this uuid, whose credentials somebody else has checked; null if there is none, or its account is
   * disabled. Needs no query once it is cached. Rejects with `unavailable` if it is not cached and the database is
   * unreachable.
   */
  identify(uuid: string): Promise<DeviceIdentity | null>;
  close(): void;
};

/** Looks up devices by uuid and caches them until the bus announces a change, or may have missed one. */
export function createDeviceIdentifier(deps: {
  db: Sql;
  bus: Bus;
  /** Whether the operator has disabled the account, as far as this process knows. */
  isDisabled?: (accountId: number) => boolean;
  /** How many devices to cache. */
  maxRemembered?: number;
}): DeviceIdentifier {
  const { db, bus, isDisabled = () => false, maxRemembered = 100_000 } = deps;
  const known = new LRUCache<string, DeviceIdentity>(atMost(maxRemembered));
  const finder = createAccessFinder(db, ({ deviceId, uuid, accountId }) => {
    known.set(uuid, { deviceId, uuid, accountId });
  });
  const unsubscribe = [
    bus.subscribe('access', ({ uuid }) => {
      known.delete(uuid);
      finder.invalidate(uuid);
    }),
    bus.subscribe('resync', () => {
      known.clear();
      finder.invalidate();
    }),
  ];
  return {
    async identify(uuid) {
      const remembered = known.get(uuid);
      if (remembered) return isDisabled(remembered.accountId) ? null : remembered;
      if (!isUuid(uuid)) return null;
      const access = await finder.find(uuid);
      return access && { deviceId: access.deviceId, uuid, accountId: access.accountId };
    },
    close: () => unsubscribe.forEach((end) => end()),
  };
}

/** The new version of the token, and when it was made. */
type Rotated = { version: number; timestamp: number };

/**
 * Makes a new token for a device. The old one works until the new one is first used, so that the device can receive it
 * over its old connection; with `revoke` the old one is retired at once.
 */
export function tokenRoute({
  db,
  bus,
  keys,
  secretId,
}: {
  db: Database;
  bus: Bus;
  keys: readonly Buffer[];
  secretId: string;
}): Route {
  return defineRoute({
    name: 'rotateDeviceToken',
    scope: 'devices:write',
    method: 'post',
    path: '/v2/devices/{deviceAuthUuid}/token',
    summary: 'Rotate a device token',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    body: TokenRotation,
    example: { revoke: false },
    response: RotatedToken,
    takesKey: true,
    errors: [404],
    handler: async ({ account, params, body, request, once }) => {
      const uuid = params.deviceAuthUuid;
      const { version, timestamp } = await once<Rotated>(async (keep) => {
        const rotate = async (sql: Sql) => {
          const raised = await raiseTokenVersion(sql, {
            accountId: account.accountId,
            uuid,
            keepPrevious: !body.revoke,
            secretId,
            ...doneBy(account, request),
          });
          if (!raised) throw noSuchDevice();
          const made = { version: raised.version, timestamp: request.now() };
          await keep?.(sql, made);
          return { ...raised, ...made };
        };
        const { deviceId, ...made } = await (keep ? db.transaction(rotate) : rotate(db));
        bus.publish('access', { deviceId, uuid });
        return made;
      });
      return { deviceAuthToken: deriveToken(keys, uuid, version), timestamp };
    },
  });
}

type TokenHandoverDeps = {
  db: Sql;
  /** The keys that device tokens are derived from, newest first. */
  keys: readonly Buffer[];
  /** The identifiers of the secrets of these keys, in the same order. */
  secretIds: readonly string[];
  /** Ms since the epoch. */
  clock: Clock;
};

type Due = { uuid: string; version: number };

/**
 * During a change of the secret, returns the new token for a device that still uses one of the previous secret, to be
 * sent on `down/token`; otherwise null, without a query. Nothing is stored: it is sent each time the device subscribes,
 * until the device has logged in with it. A process that does not know the newest secret yet, or has it only as
 * SECRET_PREVIOUS, sends nothing.
 */
export function createTokenHandover({ db, keys, secretIds, clock }: TokenHandoverDeps) {
  const [newest] = secretIds;
  const due = coalesce({ load: (ids: number[]) => listDueTokens(db, ids, newest ?? '') });

  return async (deviceId: number): Promise<Downlink | null> => {
    if (secretIds.length < 2) return null;
    const found = await due.find(deviceId);
    if (!found) return null;
    const deviceAuthToken = deriveToken(keys, found.uuid, found.version);
    return { topic: 'token', payload: { deviceAuthToken, ts: clock() } };
  };
}

/**
 * Those devices that last used a token of another secret than `newest`; none if `newest` is not the newest secret. A
 * device whose owner has just made it a new token is left out: the owner delivers that one.
 */
async function listDueTokens(db: Sql, ids: number[], newest: string): Promise<Map<number, Due>> {
  const { rows } = await db.query<Due & { id: number }>({
    name: 'devices-due-tokens',
    text: `
      select d.id, d.uuid, d.token_version as version
        from device d
       where d.id = any($1::bigint[]) and d.token_secret <> $2 and not d.previous_token_accepted
         and $2 = (select left(value, 8) from secret_check order by place limit 1)`,
    values: [ids, newest],
  });
  return new Map(rows.map(({ id, uuid, version }) => [id, { uuid, version }]));
}
