import type { WallMs } from '../lib/clock-readings.ts';

/** `pair`: access and refresh token (`/v1`); `account`: one sliding token (`/v2`). */
export type SessionKind = 'pair' | 'account';

/** What a bearer token refers to. All times in ms since the epoch. */
export type Session = {
  sessionId: string;
  accountId: number;
  accountUuid: string;
  kind: SessionKind;
  createdTs: number;
  lastUsedTs: number;
  /** From this time on the session is unknown. */
  expiresTs: number;
};

/**
 * `again`: the token was the current one until a moment ago, and returns its stored successor. `reused`: the token was
 * valid once; since somebody else may have it, the session has been revoked.
 */
export type RefreshOutcome =
  { outcome: 'rotated' | 'reused' | 'unknown' } | { outcome: 'again'; successor: string };

/** `successor`: what the old token returns again for `againMs`, encrypted. */
export type RotateTo = { oldHash: string; newHash: string; successor: string };

/** How long after a rotation the old token returns its successor again; such a use prolongs nothing. */
export const againMs = 10_000;

/** The clocks of processes differ by less: a time this far ahead was written by a clock that ran ahead. */
export const aheadMs = 60_000;

type CreateOptions = {
  /** The hash of a pair's refresh token. */
  refreshHash?: string;
  /** How many sessions the account may have, including this one. */
  limit: number;
};

/**
 * Where sessions are stored: in Redis, or in the database without Redis. Nothing is cached outside it, so a revocation
 * takes effect on every process at once, and if the store is lost everybody has to log in again. Every operation
 * rejects with `unavailable` while the store is unreachable.
 */
export type SessionStore = {
  /**
   * Creates a session. Returns the identifiers of the sessions that were ended to keep the limit: first sessions never
   * used since their login, or begun by a clock that ran ahead, then the least recently used.
   */
  create(session: Session, options: CreateOptions): Promise<string[]>;
  /** Null if it never existed, expired or was revoked. As fresh as a query made for it alone. */
  find(sessionId: string, nowTs: WallMs): Promise<Session | null>;
  /** Slides an existing session; back only from a time that is ahead. Never restores a revoked session. */
  touch(session: Session): Promise<void>;
  /**
   * Replaces the refresh token by its successor and slides the session, atomically: of any number of parallel calls
   * with the same token one gets `rotated`, the others the successor that it stored. After `againMs` the first of them
   * revokes the session. `lastUsedTs` is the current time.
   */
  rotate(session: Session, to: RotateTo): Promise<RefreshOutcome>;
  /** Newest first. */
  list(accountId: number, nowTs: WallMs): Promise<Session[]>;
  /** False if the account has no such session. */
  revoke(accountId: number, sessionId: string): Promise<boolean>;
  revokeAll(accountId: number): Promise<void>;
  /** Rejects if nothing can be written. */
  checkWrites(): Promise<void>;
  close(): Promise<void>;
};
