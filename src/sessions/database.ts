import type { Database } from '../db/database.ts';
import { coalesce } from '../lib/coalesce.ts';
import {
  deleteExpiredSessions,
  deleteSession,
  deleteSessions,
  findSuccessor,
  insertSession,
  listSessions,
  loadSessions,
  makeRoom,
  replaceRefreshHash,
  slideSession,
} from './queries.ts';
import type { SessionStore } from './store.ts';

export type DatabaseSessionOptions = {
  /** How often what ran out is deleted. */
  sweepMs?: number;
  /** The time by which sessions may be deleted, ms; null: not now, the clock is in doubt. They expire all the same. */
  believedTs: () => number | null;
  onError: (error: unknown) => void;
};

/** Sessions in a table: for an installation without Redis. */
export function startDatabaseSessions(
  db: Database,
  { sweepMs = 3_600_000, believedTs, onError }: DatabaseSessionOptions,
): SessionStore {
  const { find } = coalesce({ load: (ids: string[]) => loadSessions(db, ids), parallel: 2 });
  const sweep = setInterval(() => {
    const nowTs = believedTs();
    if (nowTs !== null) void deleteExpiredSessions(db, nowTs).catch(onError);
  }, sweepMs);
  sweep.unref();
  return {
    create: (session, { refreshHash, limit }) =>
      db.transaction(async (tx) => {
        const ended = await makeRoom(tx, session, limit - 1);
        await insertSession(tx, session, refreshHash ?? null);
        return ended;
      }),
    async find(sessionId, nowTs) {
      const session = await find(sessionId);
      return session && session.expiresTs > nowTs ? session : null;
    },
    touch: (session) => slideSession(db, session),
    async rotate(session, to) {
      if (await replaceRefreshHash(db, session, to)) return { outcome: 'rotated' };
      const successor = await findSuccessor(db, session, to.oldHash);
      if (successor !== null) return { outcome: 'again', successor };
      const wasThere = await deleteSession(db, session.accountId, session.sessionId);
      return { outcome: wasThere ? 'reused' : 'unknown' };
    },
    list: (accountId, nowTs) => listSessions(db, accountId, nowTs),
    revoke: (accountId, sessionId) => deleteSession(db, accountId, sessionId),
    revokeAll: (accountId) => deleteSessions(db, accountId),
    // Whether the database can be written to is asked for all that is in it.
    checkWrites: async () => undefined,
    async close() {
      clearInterval(sweep);
    },
  };
}
