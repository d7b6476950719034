import type { Database } from '../db/database.ts';
import { deleteInBatches } from '../db/delete-in-batches.ts';
import type { Sql } from '../db/sql.ts';
import {
  entriesValues,
  entryValues,
  insertEntriesFrom,
  insertEntryFrom,
  type NewEntry,
} from './entry.ts';
import {
  type AuditActor,
  type AuditCursor,
  type AuditDetails,
  type AuditEntry,
  AuditKind,
} from './schema.ts';

/** Writes one entry, within the transaction of what it says where there is one; none where the account is gone. */
export async function insertEntry(sql: Sql, accountId: number, entry: NewEntry): Promise<void> {
  await sql.query(
    insertEntryFrom('(select id as account_id from account where id = $1) as owner', 2),
    [accountId, ...entryValues(entry)],
  );
}

/** Writes several. */
export async function insertEntries(
  sql: Sql,
  accountId: number,
  entries: NewEntry[],
): Promise<void> {
  await sql.query(
    insertEntriesFrom('(select id as account_id from account where id = $1) as owner', 2),
    [accountId, ...entriesValues(entries)],
  );
}

export type AuditFilter = {
  /** All where absent. */
  kinds?: AuditKind[] | undefined;
  /** Inclusive, ms. */
  start: number;
  end?: number | undefined;
  /** Only what lies behind it. */
  cursor?: AuditCursor | undefined;
  limit: number;
};

export type AuditPage = { entries: AuditEntry[]; next: AuditCursor | null };

type Row = {
  id: number;
  ts: number;
  kind: AuditKind;
  actor: AuditActor;
  sessionId: string | null;
  address: string | null;
  details: AuditDetails | null;
  isCounted: boolean;
  count: number;
  lastTs: number | null;
};

/** Newest first. Each kind is read from its own range of the index, one page at most. */
export async function listEntries(
  sql: Sql,
  accountId: number,
  { kinds = AuditKind.options, start, end, cursor, limit }: AuditFilter,
): Promise<AuditPage> {
  const { rows } = await sql.query<Row>(
    `
      select found.id, found.ts, found.kind, found.actor, found.session_id as "sessionId",
             found.address, found.details, found.hour is not null as "isCounted", found.count,
             found.last_at as "lastTs"
        from unnest($2::text[]) as wanted (kind)
       cross join lateral (
         select *
           from account_audit a
          where a.account_id = $1
            and a.kind = wanted.kind
            and a.ts >= ms_to_timestamp($3)
            and ($4::bigint is null or a.ts <= ms_to_timestamp($4))
            and ($5::bigint is null or (a.ts, a.id) < (ms_to_timestamp($5), $6::bigint))
          order by a.ts desc, a.id desc
          limit $7) as found
       order by found.ts desc, found.id desc
       limit $7`,
    [accountId, kinds, start, end ?? null, cursor?.ts ?? null, cursor?.id ?? null, limit + 1],
  );
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const next = rows.length > limit && last ? { ts: last.ts, id: last.id } : null;
  return { entries: page.map(toEntry), next };
}

function toEntry({ id, ts, kind, actor, sessionId, address, ...row }: Row): AuditEntry {
  return {
    auditId: String(id),
    timestamp: ts,
    kind,
    by: actor,
    ...(sessionId === null ? {} : { [actor === 'key' ? 'keyId' : 'sessionId']: sessionId }),
    ...(address ? { address } : {}),
    ...(row.isCounted ? { count: row.count, lastTs: row.lastTs ?? ts } : {}),
    details: row.details ?? {},
  };
}

/** Forgets what is older than `beforeTs` (ms), some thousand rows a transaction. Gives how many went. */
export function forgetEntries(
  db: Database,
  beforeTs: number,
  signal?: AbortSignal,
): Promise<number> {
  const deleteSome = (limit: number) =>
    db.query(
      `delete from account_audit
        where ctid = any(array(
          select ctid from account_audit where ts < ms_to_timestamp($1) limit $2
             for update skip locked))`,
      [beforeTs, limit],
    );
  return deleteInBatches(deleteSome, { signal });
}
