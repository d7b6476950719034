import type { Sql } from '../db/sql.ts';
import { coalesce } from '../coalesce.ts';
import {
  deleteExpiredSessions,
  deleteSession,
  deleteSessions,
  insertSession,
  listSessions,
  loadSessions,
  replaceRefreshHash,
  slideSession,
} from './queries.ts';
import type { SessionStore } from './sessions.ts';

export type DatabaseSessionOptions = {
  /** How often what ran out is deleted. */
  sweepMs?: number;
  onError: (error: unknown) => void;
};

/** Sessions in a table: for an installation without Redis. */
export function startDatabaseSessions(
  sql: Sql,
  { sweepMs = 3_600_000, onError }: DatabaseSessionOptions,
): SessionStore {
  const { find } = coalesce({ load: (ids: string[]) => loadSessions(sql, ids), parallel: 2 });
  const sweep = setInterval(() => void deleteExpiredSessions(sql).catch(onError), sweepMs);
  sweep.unref();
  return {
    create: (session, refreshHash) => insertSession(sql, session, refreshHash ?? null),
    async find(sessionId, nowTs) {
      const session = await find(sessionId);
      return session && session.expiresTs > nowTs ? session : null;
    },
    touch: (session) => slideSession(sql, session),
    async rotate(session, oldHash, newHash) {
      if (await replaceRefreshHash(sql, session, oldHash, newHash)) return 'rotated';
      return (await deleteSession(sql, session.accountId, session.sessionId))
        ? 'reused'
        : 'unknown';
    },
    list: (accountId, nowTs) => listSessions(sql, accountId, nowTs),
    revoke: (accountId, sessionId) => deleteSession(sql, accountId, sessionId),
    revokeAll: (accountId) => deleteSessions(sql, accountId),
    async close() {
      clearInterval(sweep);
    },
  };
}
