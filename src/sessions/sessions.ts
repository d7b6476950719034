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

/** `reused`: the token was good once; whoever holds it now, the session has been revoked. */
export type Rotation = 'rotated' | 'reused' | 'unknown';

/**
 * Where sessions live: Redis, or the database where there is none. Nothing is remembered outside of
 * it, so a revocation holds on every process at once, and a store that lost everything knows nobody.
 * Every operation rejects with `unavailable` while the store is away.
 */
export type SessionStore = {
  create(session: Session, refreshHash?: string): Promise<void>;
  /** Null when it never existed, ran out or was revoked. As fresh as a query made for it alone. */
  find(sessionId: string, nowTs: number): Promise<Session | null>;
  /** Slides an existing session; never brings back a revoked one. */
  touch(session: Session): Promise<void>;
  /**
   * Replaces the refresh token by its successor and slides the session, atomically: one of any number
   * of parallel calls with the same token gets `rotated`, the first of the others revokes the session.
   */
  rotate(session: Session, oldHash: string, newHash: string): Promise<Rotation>;
  /** Newest first. */
  list(accountId: number, nowTs: number): Promise<Session[]>;
  /** False when the account has no such session. */
  revoke(accountId: number, sessionId: string): Promise<boolean>;
  revokeAll(accountId: number): Promise<void>;
  close(): Promise<void>;
};
