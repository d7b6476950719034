import { z } from 'zod';
import type { Database } from '../db/database.ts';
import { deleteInBatches, type Sql } from '../db/sql.ts';
import { defineRoute, type Route } from '../http/route.ts';
import {
  cursorQuery,
  cursorTs,
  limitQuery,
  linkNext,
  timestamp,
  timestampQuery,
} from '../http/schema.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** `sessionId`: for a key, the key's identifier. */
type Caller = { sessionId: string; key?: object };

/** Who did something, and from where. `sessionId`: the session's or the key's identifier. */
export type Actor = { by: AuditActor; sessionId: string | null; address: string | null };

/** Who did something, from where, and when: `ts` in ms. */
export type DoneBy = { actor: Actor; ts: number };

/** An entry to write for an account. */
export type NewEntry = DoneBy & { kind: AuditKind; details?: AuditDetails };

/** Whoever works at the service's own machine. */
export const operator: Actor = { by: 'operator', sessionId: null, address: null };

/** Who called a route with a token or a key of an account. */
function actorOf(account: Caller, request: { address: string }): Actor {
  const by = account.key ? 'key' : 'session';
  return { by, sessionId: account.sessionId, address: request.address };
}

/** The same, with the request's time of arrival. */
export function doneBy(account: Caller, request: { address: string; receivedTs: WallMs }): DoneBy {
  return { actor: actorOf(account, request), ts: request.receivedTs };
}

/**
 * SQL that writes an entry for each row of `from`, which has an `account_id`, so that a statement can record what it
 * does. `$first` and the five parameters after it come from `entryValues`.
 */
export function insertEntryFrom(from: string, first: number): string {
  const [ts, kind, actor, sessionId, address, details] = [0, 1, 2, 3, 4, 5].map(
    (place) => `$${first + place}`,
  );
  return `
    insert into account_audit (account_id, ts, kind, actor, session_id, address, details)
    select account_id, ms_to_timestamp(${ts}), ${kind}, ${actor}, ${sessionId}::uuid, ${address},
           ${details}::text::json
      from ${from}`;
}

/** The same for several entries of each account in `from`. `entriesValues` gives the values. */
export function insertEntriesFrom(from: string, first: number): string {
  const types = ['bigint', 'text', 'text', 'uuid', 'text', 'text'];
  const columns = types.map((type, place) => `$${first + place}::${type}[]`).join(', ');
  return `
    insert into account_audit (account_id, ts, kind, actor, session_id, address, details)
    select account_id, ms_to_timestamp(e.ts), e.kind, e.actor, e.session_id, e.address,
           e.details::json
      from ${from}
     cross join unnest(${columns}) as e (ts, kind, actor, session_id, address, details)`;
}

export function entriesValues(entries: NewEntry[]): unknown[] {
  const rows = entries.map(entryValues);
  return [0, 1, 2, 3, 4, 5].map((column) => rows.map((row) => row[column]));
}

export function entryValues({ kind, actor, ts, details }: NewEntry): unknown[] {
  const { by, sessionId, address } = actor;
  return [ts, kind, by, sessionId, address, details === undefined ? null : JSON.stringify(details)];
}

/** Writes one entry, in the transaction of what it records if there is one. Writes nothing if the account is gone. */
export async function insertEntry(sql: Sql, accountId: number, entry: NewEntry): Promise<void> {
  await sql.query(
    insertEntryFrom('(select id as account_id from account where id = $1) as owner', 2),
    [accountId, ...entryValues(entry)],
  );
}

/** Devices that one entry names. */
const mostNamed = 200;

/** The devices of an entry about many: how many, and the first of them. */
export const detailsOfDevices = (uuids: readonly string[]): AuditDetails => ({
  devices: uuids.length,
  deviceAuthUuids: uuids.slice(0, mostNamed),
});

/** Writes several entries. */
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

type AuditFilter = {
  /** Absent: all kinds. */
  kinds?: AuditKind[] | undefined;
  /** Inclusive, ms. */
  start: number;
  end?: number | undefined;
  /** Only entries that come after it in the list. */
  cursor?: AuditCursor | undefined;
  limit: number;
};

type AuditPage = { entries: AuditEntry[]; next: AuditCursor | null };

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

/** Newest first. Reads each kind from its own range of the index, at most one page. */
async function listEntries(
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

/** Deletes entries that are older than `beforeTs` (ms), some thousand rows per transaction. Returns how many. */
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

/** The kinds of entries; docs/audit.md says when each is written. */
export const AuditKind = z
  .enum([
    'registered',
    'login',
    'login-refused',
    'login-while-disabled',
    'session-ended',
    'password-changed',
    'password-change-refused',
    'password-reset-asked',
    'password-reset',
    'reset-link-made',
    'email-change-asked',
    'email-change-refused',
    'email-changed',
    'settings-changed',
    'device-added',
    'device-removed',
    'device-token-rotated',
    'device-token-revoked',
    'device-token-retired',
    'alarm-acknowledged',
    'alarm-closed',
    'alarm-reopened',
    'alarm-noted',
    'alarm-snoozed',
    'alarm-unsnoozed',
    'device-muted',
    'device-unmuted',
    'bulk-action',
    'profile-installed',
    'label-limits-changed',
    'configuration-changed',
    'command-given',
    'command-cancelled',
    'purpose-changed',
    'purpose-removed',
    'push-token-added',
    'push-token-removed',
    'key-made',
    'key-revoked',
    'quota-changed',
    'quota-near',
    'quota-used-up',
    'sms-allowed',
    'sms-denied',
    'disabled',
    'enabled',
  ])
  .meta({ id: 'AuditKind' });
export type AuditKind = z.infer<typeof AuditKind>;

/** What one entry says beside its kind: identifiers, names of settings, a reason. Never a secret. */
export type AuditDetails = Record<string, string | number | string[]>;

/** Who did it. `service`: one of its own rules. `nobody`: somebody without credentials. */
export const AuditActor = z
  .enum(['session', 'key', 'device', 'operator', 'service', 'nobody'])
  .meta({ id: 'AuditActor' });
type AuditActor = z.infer<typeof AuditActor>;

export const AuditEntry = z
  .object({
    auditId: z.string(),
    timestamp: timestamp.meta({
      description: 'When it happened. If the entry stands for several, the time of the first.',
    }),
    kind: AuditKind,
    by: AuditActor.meta({
      description:
        'operator: at the command line. service: a rule of the service, such as the session ' +
        'quota. nobody: the caller was not logged in.',
    }),
    sessionId: z
      .guid()
      .optional()
      .meta({ description: 'The session that caused it, or that began.' }),
    keyId: z.guid().optional().meta({ description: 'The API key that caused it.' }),
    address: z
      .string()
      .optional()
      .meta({ description: "The client's address; absent if there is none." }),
    count: z.int().optional().meta({
      description:
        'How many happened within an hour from this address; `lastTs` is the time of the last.',
    }),
    lastTs: timestamp.optional(),
    details: z.record(z.string(), z.union([z.string(), z.number(), z.array(z.string())])),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;

/** Where a page ends: the next one begins right after it. */
const AuditCursor = z.object({ ts: cursorTs, id: z.int() });
type AuditCursor = z.infer<typeof AuditCursor>;

const AuditQuery = z.object({
  kinds: z
    .string()
    .transform((text) => [...new Set(text.split(',').map((kind) => kind.trim()))].filter(Boolean))
    .pipe(z.array(AuditKind))
    .optional()
    .meta({
      override: ({ jsonSchema }: { jsonSchema: object }) => {
        for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key);
        Object.assign(jsonSchema, {
          type: 'string',
          description: 'Only these kinds: login,login-refused',
        });
      },
    }),
  start: timestampQuery.default(0),
  end: timestampQuery.optional(),
  limit: limitQuery(100),
  cursor: cursorQuery(AuditCursor),
});
type AuditQuery = z.output<typeof AuditQuery>;

export const AuditResponse = z.object({ entries: z.array(AuditEntry), timestamp });
export type AuditResponse = z.infer<typeof AuditResponse>;

/** An account's own audit trail; an addition to the specification. */
export function auditRoutes({ db }: { db: Sql }): Route[] {
  return [
    defineRoute({
      name: 'listAuditEntries',
      method: 'get',
      path: '/v2/accounts/audit',
      summary: 'Get the security audit trail',
      description:
        'Logins and refused logins, ended sessions, passwords, settings, devices and their ' +
        "tokens, profiles, configurations, actions on alarms and on many devices, and the operator's actions. Newest first. A Link header names the next page.",
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      responseHeaders: { Link: 'The next page: `<…>; rel="next"`. Absent on the last page.' },
      query: AuditQuery,
      response: AuditResponse,
      handler: async ({ account, query, request }) => {
        const { entries, next } = await listEntries(db, account.accountId, query);
        if (next) linkNext(request, next);
        return { entries, timestamp: request.now() };
      },
    }),
  ];
}
