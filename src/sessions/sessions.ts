import {
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  randomUUID,
  timingSafeEqual,
} from 'node:crypto';
import { errors, jwtVerify, SignJWT } from 'jose';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import type { Keys, UseKeys } from '../config/keys.ts';
import { DomainError } from '../errors.ts';
import { sealText, unsealText } from '../lib/crypto.ts';
import type { LimitOf } from '../quotas/quotas.ts';
import { aheadMs, type Session, type SessionKind, type SessionStore } from './store.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** Specification section 8: 15 minutes. The specification leaves the others open. */
const lifetimes = {
  accessMs: 15 * minuteMs,
  refreshMs: 30 * dayMs,
  accountIdleMs: 30 * dayMs,
  accountMs: 365 * dayMs,
  /** How old a stored last use may be before it is written again. */
  touchMs: 60 * minuteMs,
};

type Owner = { accountId: number; accountUuid: string };
type Bearer = Owner & { sessionId: string };
type TokenPair = { token: string; refreshToken: string };

/** `address`: who used the refresh token again. */
export type EndedSession = {
  accountId: number;
  sessionId: string;
  reason: 'sessions-quota' | 'refresh-token-reused';
  address: string | null;
};

type SessionsDeps = {
  store: SessionStore;
  keys: Pick<Keys, 'accountTokens' | 'refreshTokens'>;
  clock: Clock;
  /** How far ahead the right time may be while the clock is in doubt, ms (src/clock). Absent: 0. */
  doubtSpanMs?: () => number;
  /** The quota `sessions`. */
  limitOf: LimitOf;
  /** Whether the operator has disabled the account: its sessions are then not accepted, wherever they come from. */
  isDisabled?: (accountId: number) => boolean;
  /** A rule ended a session; for the audit trail. */
  onEnded?: (ended: EndedSession) => void;
  /**
   * Deletes what belonged to ended sessions (null: to all of the account), before the caller who ended them gets an
   * answer. `forgetTokensOfEnded` deletes later what this cannot.
   */
  release?: (accountId: number, sessionIds: string[] | null) => Promise<void>;
  /** A session was revoked, or (without `sessionId`) all sessions of an account. */
  onRevoked: (revoked: { accountId: number; sessionId?: string }) => void;
};

export type Sessions = {
  /** `/v2`: one token that slides: 30 days from its last use, at most a year. */
  startAccountSession: (owner: Owner) => Promise<{ token: string; sessionId: string }>;
  /** `/v1`: an access token for 15 minutes, and a refresh token for 30 days. */
  startPair: (owner: Owner) => Promise<TokenPair & { sessionId: string }>;
  /**
   * Specification 5.1 step 4. The access token may have expired. For `againMs` after a rotation the old refresh token
   * returns the same pair again. Throws `unauthenticated`.
   */
  refresh: (
    accessToken: string,
    refreshToken: string,
    address?: string | null,
  ) => Promise<TokenPair>;
  /** The account of a bearer token, looked up in the store each time. Throws `unauthenticated`. */
  authenticate: (token: string) => Promise<Bearer>;
  /** The bearer of a session by its identifier, looked up in the store each time. Throws `unauthenticated`. */
  find: (accountId: number, sessionId: string) => Promise<Bearer>;
  list: (accountId: number) => Promise<Session[]>;
  revoke: (accountId: number, sessionId: string) => Promise<boolean>;
  revokeAll: (accountId: number) => Promise<void>;
};

export function createSessions(deps: SessionsDeps): Sessions {
  const { store, keys, clock, onRevoked, onEnded, isDisabled, release } = deps;
  const tokens = createTokens(keys.accountTokens);
  /** A later time was written by a clock that ran ahead: such a session would last until time had caught up. */
  const latestTs = () => clock() + Math.max(0, deps.doubtSpanMs?.() ?? 0) + aheadMs;

  const begin = (owner: Owner, kind: SessionKind, livesMs: number): Session => {
    const nowTs = clock();
    return {
      ...owner,
      sessionId: randomUUID(),
      kind,
      createdTs: nowTs,
      lastUsedTs: nowTs,
      expiresTs: nowTs + livesMs,
    };
  };
  const sign = ({ accountUuid, sessionId }: Session, livesMs: number): Promise<string> => {
    const issuedTs = clock();
    const expiresTs = issuedTs + livesMs;
    return tokens.sign({ sub: accountUuid, sid: sessionId, issuedTs, expiresTs });
  };
  const create = async (session: Session, refreshToken?: string): Promise<void> => {
    const { accountId } = session;
    const limit = await deps.limitOf(accountId);
    const refresh =
      refreshToken === undefined ? {} : { refreshHash: hashRefreshToken(refreshToken) };
    const ended = await store.create(session, { ...refresh, limit });
    for (const sessionId of ended) {
      onRevoked({ accountId, sessionId });
      onEnded?.({ accountId, sessionId, reason: 'sessions-quota', address: null });
    }
    if (ended.length > 0) await release?.(accountId, ended);
  };
  /** The session of a token, as long as it lasts. */
  const find = async (token: string, { evenExpired = false } = {}): Promise<Session> => {
    const claims = await tokens.verify(token);
    if (!claims) throw noSession();
    const isInTime = claims.exp * 1_000 > clock() && claims.iat * 1_000 <= latestTs();
    if (!evenExpired && !isInTime) throw noSession();
    const session = await store.find(claims.sid, clock());
    if (session?.accountUuid !== claims.sub || session.createdTs > latestTs()) throw noSession();
    if (isDisabled?.(session.accountId)) throw noSession();
    return session;
  };

  return {
    async startAccountSession(owner) {
      const session = begin(owner, 'account', lifetimes.accountIdleMs);
      await create(session);
      return { token: await sign(session, lifetimes.accountMs), sessionId: session.sessionId };
    },

    async startPair(owner) {
      const session = begin(owner, 'pair', lifetimes.refreshMs);
      const refreshToken = makeRefreshToken(keys.refreshTokens, session.sessionId);
      await create(session, refreshToken);
      const token = await sign(session, lifetimes.accessMs);
      return { token, refreshToken, sessionId: session.sessionId };
    },

    async refresh(accessToken, refreshToken, address = null) {
      const session = await find(accessToken, { evenExpired: true });
      const { accountId, sessionId } = session;
      if (!isRefreshToken(keys.refreshTokens, sessionId, refreshToken)) throw noSession();
      const nowTs = clock();
      const next = makeRefreshToken(keys.refreshTokens, sessionId);
      const pair = { token: await sign(session, lifetimes.accessMs), refreshToken: next };
      const rotation = await store.rotate(
        { ...session, lastUsedTs: nowTs, expiresTs: nowTs + lifetimes.refreshMs },
        {
          oldHash: hashRefreshToken(refreshToken),
          newHash: hashRefreshToken(next),
          successor: seal(JSON.stringify(pair), refreshToken),
        },
      );
      if (rotation.outcome === 'rotated') return pair;
      if (rotation.outcome === 'again') {
        return JSON.parse(unseal(rotation.successor, refreshToken)) as TokenPair;
      }
      if (rotation.outcome === 'reused') {
        onRevoked({ accountId, sessionId });
        onEnded?.({ accountId, sessionId, reason: 'refresh-token-reused', address });
        await release?.(accountId, [sessionId]);
      }
      throw noSession();
    },

    async authenticate(token) {
      const session = await find(token);
      const touched = touch(session, clock());
      if (touched) await store.touch(touched);
      const { accountId, accountUuid, sessionId } = session;
      return { accountId, accountUuid, sessionId };
    },

    async find(accountId, sessionId) {
      const session = await store.find(sessionId, clock());
      if (session?.accountId !== accountId || isDisabled?.(accountId)) throw noSession();
      return { accountId, accountUuid: session.accountUuid, sessionId };
    },

    list: (accountId) => store.list(accountId, clock()),

    async revoke(accountId, sessionId) {
      const revoked = await store.revoke(accountId, sessionId);
      if (revoked) {
        onRevoked({ accountId, sessionId });
        await release?.(accountId, [sessionId]);
      }
      return revoked;
    },

    async revokeAll(accountId) {
      await store.revokeAll(accountId);
      onRevoked({ accountId });
      await release?.(accountId, null);
    },
  };
}

/**
 * The session to write because of a use now; null if that can wait. The first use is written at once, because a session
 * without one is the first to be ended when there are too many.
 */
function touch(session: Session, nowTs: WallMs): Session | null {
  const { kind, createdTs, lastUsedTs } = session;
  const isFirstUse = lastUsedTs <= createdTs;
  // Only its refresh token prolongs a pair.
  const isAhead = lastUsedTs > nowTs + aheadMs;
  const slides = kind === 'account' && (isAhead || nowTs - lastUsedTs >= lifetimes.touchMs);
  if (!isFirstUse && !slides) return null;
  const endTs = createdTs + lifetimes.accountMs;
  const expiresTs = slides ? Math.min(nowTs + lifetimes.accountIdleMs, endTs) : session.expiresTs;
  return { ...session, lastUsedTs: Math.max(nowTs, createdTs + 1), expiresTs };
}

function noSession(): DomainError {
  return new DomainError('unauthenticated', 'The token is invalid or has expired.');
}

const algorithm = 'HS256';
const issuer = 'sensorium';
// A device's token is not a JWT, and nothing else is signed for this audience.
const audience = 'sensorium account';

const Claims = z.object({ sub: z.string(), sid: z.string(), iat: z.int(), exp: z.int() });
/** Account uuid, session, issue and expiry (seconds since the epoch, RFC 7519) of a token. */
type Claims = z.infer<typeof Claims>;

type Tokens = {
  /** `issuedTs` and `expiresTs` in ms. */
  sign(claims: { sub: string; sid: string; issuedTs: number; expiresTs: number }): Promise<string>;
  /** Null unless this installation signed it. The caller checks whether it has expired. */
  verify(token: string): Promise<Claims | null>;
};

/**
 * JSON Web Tokens with a pinned algorithm, issuer and audience (RFC 8725). A valid signature stays valid, so up to
 * `remembered` verified tokens are cached; their expiry is checked each time.
 */
function createTokens(keys: UseKeys, remembered = 10_000): Tokens {
  const newest = newestKey(keys);
  const keysById = new Map(keys.map((key) => [keyId(key), key]));
  const verified = new LRUCache<string, Claims>({ max: remembered });

  return {
    sign: ({ sub, sid, issuedTs, expiresTs }) =>
      new SignJWT({ sid })
        .setProtectedHeader({ alg: algorithm, kid: keyId(newest) })
        .setSubject(sub)
        .setIssuer(issuer)
        .setAudience(audience)
        // Makes two tokens of the same second differ.
        .setJti(randomUUID())
        .setIssuedAt(Math.floor(issuedTs / 1_000))
        .setExpirationTime(Math.floor(expiresTs / 1_000))
        .sign(newest),

    async verify(token) {
      const known = verified.get(token);
      if (known) return known;
      const claims = await verifySignature(token, keysById);
      if (!claims) return null;
      verified.set(token, claims);
      return claims;
    },
  };
}

async function verifySignature(token: string, keysById: Map<string, Buffer>) {
  try {
    const { payload } = await jwtVerify(
      token,
      (header) => {
        const key = keysById.get(header.kid ?? '');
        if (!key) throw new errors.JWSSignatureVerificationFailed();
        return key;
      },
      // Verified as of the epoch, so that no token counts as expired: the caller checks expiry at each use.
      // oxlint-disable-next-line no-restricted-globals -- a given time
      { algorithms: [algorithm], issuer, audience, currentDate: new Date(0) },
    );
    return Claims.parse(payload);
  } catch (error) {
    if (error instanceof errors.JOSEError || error instanceof z.ZodError) return null;
    throw error;
  }
}

/** The key that signs. Throws if there is none. */
function newestKey(keys: UseKeys): Buffer {
  const key = keys[0];
  if (!key) throw new Error('There is no key to sign with.');
  return key;
}

function keyId(key: Buffer): string {
  return createHash('sha256').update(key).digest('base64url').slice(0, 8);
}

/**
 * Refresh tokens: `session.random.signature`. The signature distinguishes a token that was issued once (using it again
 * means theft) from an invented one (which must not end anybody's session).
 */
function makeRefreshToken(keys: UseKeys, sessionId: string): string {
  const text = `${sessionId}.${randomBytes(32).toString('base64url')}`;
  return `${text}.${signature(newestKey(keys), text)}`;
}

/** Whether this installation made the token, for this session. */
function isRefreshToken(keys: UseKeys, sessionId: string, token: string): boolean {
  const end = token.lastIndexOf('.');
  const text = token.slice(0, Math.max(end, 0));
  const given = Buffer.from(token.slice(end + 1));
  if (!text.startsWith(`${sessionId}.`)) return false;
  return keys.some((key) => {
    const expected = Buffer.from(signature(key, text));
    return expected.length === given.length && timingSafeEqual(expected, given);
  });
}

/** What is stored of a token. It has 256 random bits, so a plain hash suffices. */
function hashRefreshToken(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}

function signature(key: Buffer, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url');
}

/**
 * Encrypts text with a key derived from a token, which is not stored beside it. A token has 256 random bits, so the key
 * needs no stretching.
 */
const seal = (text: string, token: string): string => sealText(text, keyOf(token));

/** Decrypts the result of `seal`. Throws if the token is another one, or the text was changed. */
const unseal = (sealed: string, token: string): string => unsealText(sealed, keyOf(token));

function keyOf(token: string): Buffer {
  return Buffer.from(hkdfSync('sha256', token, 'sensorium', 'v1 refresh successor', 32));
}
