import type { WallMs } from '../lib/clock-readings.ts';

/** `pair`: access and refresh token (`/v1`); `account`: one sliding token (`/v2`). */
export type SessionKind = 'pair' | 'account';

/** What a bearer token stands for. All times in ms since the epoch. */
export type Session = {
  sessionId: string;
  accountId: number;
  accountUuid: string;
  kind: SessionKind;
  createdTs: number;
  lastUsedTs: number;
  /** From then on the session is unknown. */
  expiresTs: number;
};

/**
 * `again`: the token was the current one until a moment ago, and gives the successor that was kept.
 * `reused`: it was good once; whoever holds it now, the session has been revoked.
 */
export type RefreshOutcome =
  { outcome: 'rotated' | 'reused' | 'unknown' } | { outcome: 'again'; successor: string };

/** `successor`: what the old token gives again for `againMs`, sealed. */
export type RotateTo = { oldHash: string; newHash: string; successor: string };

/** How long from a rotation the old token gives its successor again; using it so prolongs nothing. */
export const againMs = 10_000;

/** Clocks of processes differ by less: a time so much later was written by a clock that was ahead. */
export const aheadMs = 60_000;

type CreateOptions = {
  /** Of a pair's refresh token. */
  refreshHash?: string;
  /** How many sessions the account may have, this one among them. */
  limit: number;
};

/**
 * Where sessions live: Redis, or the database where there is none. Nothing is remembered outside of
 * it, so a revocation holds on every process at once, and after a loss of the store all log in again.
 * Every operation rejects with `unavailable` while the store is away.
 */
export type SessionStore = {
  /**
   * Creates a session. Returns the identifiers of the sessions that were ended to keep the limit: first
   * sessions never used since their login, or begun by a clock that was ahead, then the least recently used.
   */
  create(session: Session, options: CreateOptions): Promise<string[]>;
  /** Null when it never existed, ran out or was revoked. As fresh as a query made for it alone. */
  find(sessionId: string, nowTs: WallMs): Promise<Session | null>;
  /** Slides an existing session, back only from a time that is ahead; nor does it bring back a revoked one. */
  touch(session: Session): Promise<void>;
  /**
   * Replaces the refresh token by its successor and slides the session, atomically: one of any number
   * of parallel calls with the same token gets `rotated`, the others what that one left as successor.
   * Later than `againMs` the first of them revokes the session. `lastUsedTs` is the present.
   */
  rotate(session: Session, to: RotateTo): Promise<RefreshOutcome>;
  /** Newest first. */
  list(accountId: number, nowTs: WallMs): Promise<Session[]>;
  /** False when the account has no such session. */
  revoke(accountId: number, sessionId: string): Promise<boolean>;
  revokeAll(accountId: number): Promise<void>;
  /** Rejects where nothing can be written. */
  checkWrites(): Promise<void>;
  close(): Promise<void>;
};
