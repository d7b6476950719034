import type { AuditActor, AuditDetails, AuditKind } from './schema.ts';

/** `sessionId`: of a key the key's identifier. */
type Caller = { sessionId: string; key?: object };

/** Who did something, and from where. `sessionId`: of a session, or of a key. */
export type Actor = { by: AuditActor; sessionId: string | null; address: string | null };

/** Who did something, from where, and when: `ts` in ms. */
export type DoneBy = { actor: Actor; ts: number };

/** Something to be written down of an account. */
export type NewEntry = DoneBy & { kind: AuditKind; details?: AuditDetails };

/** Whoever works at the service's own machine. */
export const operator: Actor = { by: 'operator', sessionId: null, address: null };

/** Who called a route with an account's token, or with a key of it. */
function actorOf(account: Caller, request: { address: string }): Actor {
  const by = account.key ? 'key' : 'session';
  return { by, sessionId: account.sessionId, address: request.address };
}

/** The same, with when the request arrived. */
export function doneBy(account: Caller, request: { address: string; receivedTs: number }): DoneBy {
  return { actor: actorOf(account, request), ts: request.receivedTs };
}

/**
 * SQL that writes an entry for each row of `from`, which has an `account_id`: so that a statement can
 * say what it did by itself. `$first` and the five behind it are what `entryValues` gives.
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

/** The same for several entries at once, of each account in `from`; `entriesValues` gives the values. */
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
