import type { Database } from '../db/database.ts';
import { type Sql, unseenArray } from '../db/sql.ts';
import { coalesce } from '../lib/coalesce.ts';
import {
  againMs,
  aheadMs,
  type RotateTo,
  type Session,
  type SessionKind,
  type SessionStore,
} from './store.ts';
import type { WallMs } from '../lib/clock-readings.ts';

type DatabaseSessionOptions = {
  /** How often expired sessions are deleted. */
  sweepMs?: number;
  /** The time to use for deleting sessions, ms; null if the clock is in doubt. Sessions expire regardless. */
  believedTs: () => WallMs | null;
  onError: (error: unknown) => void;
};

/** Sessions in a table, for an installation without Redis. */
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
        const ended = await endOldest(tx, session, limit - 1);
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
    // Not needed: whether the database can be written to is checked for the database as a whole.
    checkWrites: async () => undefined,
    async close() {
      clearInterval(sweep);
    },
  };
}

type Row = {
  id: string;
  account_id: number;
  account_uuid: string;
  kind: SessionKind;
  created_at: number;
  used_at: number;
  expires_at: number;
};

/**
 * Ends sessions of the account until `room` are left, and returns their identifiers: first those never used since their
 * login, then the least recently used. The lock on the account makes the count exact: another login waits until this
 * transaction has added its session.
 */
async function endOldest(
  tx: Sql,
  { accountId, createdTs }: Session,
  kept: number,
): Promise<string[]> {
  await tx.query('select from account where id = $1 for no key update', [accountId]);
  const { rows } = await tx.query<{ id: string }>(
    `
      delete from session
      where id in (
        select id
        from session
        where account_id = $1 and expires_at > ms_to_timestamp($2)
        order by used_at > created_at and created_at <= ms_to_timestamp($2 + ${aheadMs}) desc,
          used_at desc, id desc
        offset $3
      )
      returning id
    `,
    [accountId, createdTs, kept],
  );
  return rows.map(({ id }) => id);
}

/** Inserts nothing if the account was deleted meanwhile. */
async function insertSession(
  sql: Sql,
  session: Session,
  refreshHash: string | null,
): Promise<void> {
  await sql.query(
    `
      insert into session (id, account_id, kind, created_at, used_at, expires_at, refresh_hash)
      select $1, id, $3, ms_to_timestamp($4), ms_to_timestamp($5), ms_to_timestamp($6), $7
      from account
      where id = $2 and removed_at is null
    `,
    [
      session.sessionId,
      session.accountId,
      session.kind,
      session.createdTs,
      session.lastUsedTs,
      session.expiresTs,
      refreshHash,
    ],
  );
}

/** The sessions that exist, by identifier; the caller checks whether they have expired. */
async function loadSessions(sql: Sql, ids: string[]): Promise<Map<string, Session>> {
  const { rows } = await sql.query<Row>({
    // Prepared once for each connection: every authenticated request runs it.
    name: 'load-sessions',
    text: `
      select session.id, session.account_id, account.uuid as account_uuid, session.kind,
        session.created_at, session.used_at, session.expires_at
      from session
      join account on account.id = session.account_id and account.removed_at is null
      where session.id = any (${unseenArray('$1', 'uuid')})
    `,
    values: [ids],
  });
  return new Map(rows.map((row) => [row.id, toSession(row)]));
}

/** Never inserts, so that a revoked session stays revoked; never overwrites a later use. */
async function slideSession(sql: Sql, session: Session): Promise<void> {
  await sql.query(
    `
      update session
      set used_at = ms_to_timestamp($2), expires_at = ms_to_timestamp($3)
      where id = $1
        and (used_at < ms_to_timestamp($2) or used_at > ms_to_timestamp($2 + ${aheadMs}))
    `,
    [session.sessionId, session.lastUsedTs, session.expiresTs],
  );
}

/** False if the old token is not the session's current one. The row lock makes this atomic. */
async function replaceRefreshHash(
  sql: Sql,
  session: Session,
  { oldHash, newHash, successor }: RotateTo,
): Promise<boolean> {
  const { rowCount } = await sql.query(
    `
      update session
      set refresh_hash = $3, used_at = ms_to_timestamp($4), expires_at = ms_to_timestamp($5),
        previous_hash = $2, rotated_at = ms_to_timestamp($4), successor = $6
      where id = $1 and refresh_hash = $2
    `,
    [session.sessionId, oldHash, newHash, session.lastUsedTs, session.expiresTs, successor],
  );
  return rowCount === 1;
}

/** What the previous token may still be exchanged for; null for any other token, and after `againMs`. */
async function findSuccessor(
  sql: Sql,
  { sessionId, lastUsedTs: nowTs }: Session,
  oldHash: string,
): Promise<string | null> {
  const { rows } = await sql.query<{ successor: string }>(
    `
      select successor
      from session
      where id = $1 and previous_hash = $2 and rotated_at > ms_to_timestamp($3)
    `,
    [sessionId, oldHash, nowTs - againMs],
  );
  return rows[0]?.successor ?? null;
}

async function listSessions(sql: Sql, accountId: number, nowTs: WallMs): Promise<Session[]> {
  const { rows } = await sql.query<Row>(
    `
      select session.id, session.account_id, account.uuid as account_uuid, session.kind,
        session.created_at, session.used_at, session.expires_at
      from session
      join account on account.id = session.account_id and account.removed_at is null
      where session.account_id = $1 and session.expires_at > ms_to_timestamp($2)
      order by session.created_at desc, session.id
    `,
    [accountId, nowTs],
  );
  return rows.map(toSession);
}

async function deleteSession(sql: Sql, accountId: number, id: string): Promise<boolean> {
  const { rowCount } = await sql.query(
    `
      delete from session
      where account_id = $1 and id = $2
    `,
    [accountId, id],
  );
  return rowCount === 1;
}

async function deleteSessions(sql: Sql, accountId: number): Promise<void> {
  await sql.query(
    `
      delete from session
      where account_id = $1
    `,
    [accountId],
  );
}

async function deleteExpiredSessions(sql: Sql, nowTs: WallMs): Promise<void> {
  await sql.query(
    `
      delete from session
      where expires_at < ms_to_timestamp($1)
    `,
    [nowTs],
  );
}

function toSession(row: Row): Session {
  return {
    sessionId: row.id,
    accountId: row.account_id,
    accountUuid: row.account_uuid,
    kind: row.kind,
    createdTs: row.created_at,
    lastUsedTs: row.used_at,
    expiresTs: row.expires_at,
  };
}
