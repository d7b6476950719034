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

// 192 bits: far beyond guessing, and 32 characters, which leaves room in the 256 bytes that small
// MQTT clients keep for the whole CONNECT packet.
const tokenBytes = 24;
const tokenLength = 32;

/**
 * A device's token, 32 URL-safe characters: derived from its uuid (lower case) and its token's
 * version, so that no credential is ever stored. The newest key makes it.
 */
export function deriveToken(keys: readonly Buffer[], uuid: string, version: number): string {
  const [newest] = keys;
  if (!newest) throw new Error('there is no key for device tokens');
  return derive(newest, uuid, version);
}

/** Whether `token` is that of the device at this version under any of the keys, in constant time. */
export function isToken(
  keys: readonly Buffer[],
  uuid: string,
  version: number,
  token: string,
): boolean {
  return findTokenKey(keys, uuid, version, token) >= 0;
}

/** The place of the key under which `token` is that of the device at this version; -1: none. In constant time. */
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

/** A token that `isToken` found right, to be compared by `isSameToken`. */
export function bytesOfToken(token: string): Buffer {
  // Its own few bytes: a slice of Node's pool would keep 8 KiB.
  const bytes = Buffer.alloc(tokenLength);
  bytes.write(token);
  return bytes;
}

/** Whether `token` is the one that is known, in constant time. */
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

/** Made once: of bytes, each digest would make its own, which takes several times as long. */
function objectOf(key: Buffer): KeyObject {
  const known = objects.get(key);
  if (known) return known;
  const made = createSecretKey(key);
  objects.set(key, made);
  return made;
}

/**
 * The version of a device's token; `previous`: the token before it is accepted too. `secretId`: of which secret the
 * token is that it used last; `newestSecretId`: the newest secret of the database, null where it knows none.
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

/** By uuid; devices that do not exist, or whose account is disabled, are left out. */
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

/** Says whether this call was the one that retired it. */
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

/** Devices showed a token of this secret; of one that is given twice the last counts. */
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
  /** The token before it works until the new one is first used. */
  keepPrevious: boolean;
  /** Of which secret the new token is. */
  secretId: string;
  actor: Actor;
  ts: number;
};

/** The new version; null when the account has no such device. */
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
  /** The version of the device's token now, from the database; null when there is no such device. */
  find(uuid: string): Promise<Access | null>;
  /** What was asked before this for the device (without one: for any) is asked again. */
  invalidate(uuid?: string): void;
};

/** Looks devices' credentials up; ten thousand at once are a few queries. */
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
        // The answer may be older than the change: it must neither be used nor remembered.
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

type DeviceIdentifierDeps = {
  db: Sql;
  bus: Bus;
  /** Whether the operator has shut the account out, as far as this process knows. */
  isDisabled?: (accountId: number) => boolean;
  /** Devices that are remembered. */
  maxRemembered?: number;
};

type DeviceIdentifier = {
  /**
   * The device with this uuid, whose credentials somebody else has checked; null when there is none, or
   * its account is disabled.
   * No query once it is known. Rejects with `unavailable` when the store is away and it is not.
   */
  identify(uuid: string): Promise<DeviceIdentity | null>;
  close(): void;
};

/** Knows devices by their uuid, and forgets them when the bus tells of a change or may have missed one. */
export function createDeviceIdentifier(deps: DeviceIdentifierDeps): DeviceIdentifier {
  const { db, bus, isDisabled = () => false, maxRemembered = 100_000 } = deps;
  const known = new LRUCache<string, DeviceIdentity>({ max: maxRemembered });
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

type TokenRouteDeps = { db: Database; bus: Bus; keys: readonly Buffer[]; secretId: string };

/**
 * Gives a device a new token. The old one works until the new one is first used, so that a device
 * can be told of it by the old way; with `revoke` it is retired at once.
 */
export function tokenRoute({ db, bus, keys, secretId }: TokenRouteDeps): Route {
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
  /** What device tokens are derived from, newest first. */
  keys: readonly Buffer[];
  /** The secrets of these keys, in the same order. */
  secretIds: readonly string[];
  /** Ms since the epoch. */
  clock: Clock;
};

type Due = { uuid: string; version: number };

/**
 * While the secret is being changed: the new token of a device that still uses one of the secret before, as it is sent on
 * `down/token`; null where there is none to be sent. Costs no query otherwise. Nothing is stored: it is sent each time
 * the device subscribes, until it has logged in with it. A process that has not been told of the newest secret, or
 * knows it as SECRET_PREVIOUS only, hands over nothing.
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
 * Of these devices those that last showed a token of another secret than `newest`; none where that is not the newest one.
 * One whose owner has made it a new token is left to its owner.
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
