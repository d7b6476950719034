import { z } from 'zod';
import { type AuditDetails, doneBy, type DoneBy, insertEntry } from '../audit/audit.ts';
import { sayWarnings, SomeWarnings, warnOfUnknownTo } from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleIds, MessageResponse, timestamp } from '../http/schema.ts';
import { accountGone, quotaExceeded } from '../quotas/quotas.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { PushTokenText } from './schema.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/**
 * Push tokens, one by one. A token belongs to the session that added it and is removed when that session ends: a
 * telephone that logs out gets no more notifications. The tokens in the specification's `apn` belong to the account;
 * Update Account replaces only those. A message goes to each token once, wherever it is stored.
 */
type PushTokenDeps = {
  db: Database;
  listSessions: Sessions['list'];
  /** The quota `pushTokens`. */
  limitOf: (accountId: number) => number;
  /** Called in the transaction that adds a token which is new to the account. */
  onPushTokens?: ((tx: Sql, accountId: number, nowTs: WallMs) => Promise<void>) | undefined;
};

const NewPushToken = z.object({
  token: PushTokenText,
  name: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: "The account's own name for this phone." }),
});
type NewPushToken = z.infer<typeof NewPushToken>;

/** Derived from the token: an app that lost the identifier gets it back by adding its token again. */
const tokenId = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .meta({ example: exampleIds.pushToken });

const PushTokenEntry = z
  .object({
    tokenId,
    token: z
      .string()
      .meta({ description: 'The last characters of the token, to recognise it by.' }),
    name: z.string().optional(),
    sessionId: z.guid().optional().meta({
      description: 'The token is removed when this session ends. Absent for a token in `apn`.',
    }),
    current: z.boolean().meta({ description: 'Whether the session of this request added it.' }),
    addedTs: z.int().optional().meta({ description: 'Absent for tokens in `apn`.' }),
  })
  .meta({ id: 'PushTokenEntry' });

const tag = 'Push tokens';
const path = '/v2/accounts/push-tokens';
const pathOfOne = `${path}/{tokenId}`;
const OneToken = z.object({
  tokenId,
});

export function pushTokenRoutes(deps: PushTokenDeps): Route[] {
  const { db, listSessions } = deps;
  return [
    defineRoute({
      name: 'addPushToken',
      method: 'post',
      path,
      summary: 'Add a push token',
      description:
        'The token belongs to the session of this request and is removed when that session ' +
        'ends. A token that the account already has moves to this session, even if it is in ' +
        '`apn`. An app may therefore add its token each time it starts.',
      tag,
      auth: 'account',
      takesKey: true,
      errors: [403],
      body: NewPushToken,
      example: { token: 'b1946ac92492d2347c6235b4d2611184', name: "Ada's phone" },
      response: z.object({ tokenId, timestamp, warnings: SomeWarnings }),
      warnOf: warnOfUnknownTo(NewPushToken, PushTokenEntry),
      handler: async ({ account, body, request, once, warnings }) => {
        const { accountId, sessionId } = account;
        return once<{ tokenId: string; timestamp: number }>((keep) =>
          db.transaction(async (tx) => {
            const by = doneBy(account, request);
            const added = await addToken(tx, deps, { accountId, sessionId }, body, by);
            const answer = { tokenId: added, timestamp: request.now(), ...sayWarnings(warnings) };
            await keep?.(tx, answer);
            return answer;
          }),
        );
      },
    }),
    defineRoute({
      name: 'listPushTokens',
      method: 'get',
      path,
      summary: 'List push tokens',
      description:
        'All push tokens of the account: first those that sessions added, newest first, then ' +
        'those of `apn` in their order.',
      tag,
      auth: 'account',
      errors: [],
      secrets: 'always',
      response: z.object({ timestamp, pushTokens: z.array(PushTokenEntry) }),
      handler: async ({ account: { accountId, sessionId }, request }) => {
        const live = new Set((await listSessions(accountId)).map((session) => session.sessionId));
        const rows = await listTokens(db, accountId);
        const shown = rows.filter((row) => row.sessionId === null || live.has(row.sessionId));
        const pushTokens = shown.map((row) => ({
          tokenId: row.tokenId,
          token: `…${row.ending}`,
          ...(row.name === null ? {} : { name: row.name }),
          ...(row.sessionId === null ? {} : { sessionId: row.sessionId }),
          current: row.sessionId === sessionId,
          ...(row.addedTs === null ? {} : { addedTs: row.addedTs }),
        }));
        return { timestamp: request.now(), pushTokens };
      },
    }),
    defineRoute({
      name: 'removePushToken',
      method: 'delete',
      path: pathOfOne,
      summary: 'Remove a push token',
      tag,
      auth: 'account',
      errors: [],
      params: OneToken,
      response: MessageResponse,
      handler: async ({ account, params: { tokenId: id }, request }) => {
        await removeTokens(db, account.accountId, id, doneBy(account, request));
        return { timestamp: request.now(), message: 'The push token was removed.' };
      },
    }),
    defineRoute({
      name: 'removePushTokens',
      method: 'delete',
      path,
      summary: 'Remove all push tokens',
      description:
        'Removes the tokens in `apn` and those of every session. Apps add theirs again when they start.',
      tag,
      auth: 'account',
      errors: [],
      response: MessageResponse,
      handler: async ({ account, request }) => {
        await removeTokens(db, account.accountId, null, doneBy(account, request));
        return { timestamp: request.now(), message: 'The push tokens were removed.' };
      },
    }),
  ];
}

/** The token's identifier in paths: the first half of its SHA-256. */
const idOf = (token: string) => `left(encode(sha256(convert_to(${token}, 'UTF8')), 'hex'), 32)`;

async function addToken(
  tx: Sql,
  { limitOf, onPushTokens }: PushTokenDeps,
  { accountId, sessionId }: { accountId: number; sessionId: string },
  { token, name = null }: { token: string; name?: string | null | undefined },
  by: DoneBy,
): Promise<string> {
  // Serializes additions, so that the count is exact; if the account is deleted meanwhile, this finds it gone.
  const { rowCount } = await tx.query(
    'select from account where id = $1 and removed_at is null for no key update',
    [accountId],
  );
  if (rowCount === 0) throw accountGone();
  const { rows } = await tx.query<{ id: string; used: number; owner: string | null }>(
    `select ${idOf('$2::text')} as id, count(*)::integer as used,
            max(session_id::text) filter (where token = $2) as owner
       from push_token where account_id = $1`,
    [accountId, token],
  );
  const { id = '', used = 0, owner = null } = rows[0] ?? {};
  const limit = limitOf(accountId);
  if (owner === null && used >= limit) throw quotaExceeded({ quota: 'pushTokens', limit, used });
  await tx.query(
    `insert into push_token as t (account_id, token, session_id, name, added_at)
     values ($1, $2, $3, $4, ms_to_timestamp($5))
     on conflict (account_id, token) do update
       set session_id = excluded.session_id, name = coalesce(excluded.name, t.name),
           added_at = case when t.session_id = excluded.session_id then t.added_at else excluded.added_at end`,
    [accountId, token, sessionId, name, by.ts],
  );
  // Otherwise it would stay when the session ends.
  await tx.query(
    `update account set apn = ${apnWithout('$2')}
      where id = $1 and apn @> jsonb_build_array(jsonb_build_object('token', $2::text))`,
    [accountId, token],
  );
  // Apps that add their token at each start change nothing.
  if (owner === sessionId) return id;
  const details = { tokenId: id, ...(name === null ? {} : { name }) };
  await insertEntry(tx, accountId, { kind: 'push-token-added', ...by, details });
  await onPushTokens?.(tx, accountId, by.ts);
  return id;
}

const apnWithout = (token: string) => `(
  select coalesce(jsonb_agg(entry order by place), '[]')
    from jsonb_array_elements(apn) with ordinality as e (entry, place)
   where entry ->> 'token' is distinct from ${token})`;

type TokenRow = {
  tokenId: string;
  /** The part of it that is shown. */
  ending: string;
  name: string | null;
  sessionId: string | null;
  addedTs: number | null;
};

/** Those of sessions, newest first, then those of `apn`; without duplicates. */
async function listTokens(sql: Sql, accountId: number): Promise<TokenRow[]> {
  const { rows } = await sql.query<TokenRow>(
    `with all_tokens as (
       select token, name, session_id, added_at, 0 as place from push_token where account_id = $1
        union all
       select entry ->> 'token', null, null, null, min(place)
         from account
        cross join jsonb_array_elements(apn) with ordinality as e (entry, place)
        where id = $1 and entry ->> 'token' is not null
          and not exists (select from push_token t where t.account_id = $1 and t.token = entry ->> 'token')
        group by 1
     )
     select ${idOf('token')} as "tokenId", right(token, least(4, length(token) / 2)) as ending, name,
            session_id as "sessionId", added_at as "addedTs"
       from all_tokens
      order by place, added_at desc, token`,
    [accountId],
  );
  return rows;
}

/** Removes one token, or all (null), wherever they are stored. Throws `not-found` if the account has no such token. */
async function removeTokens(
  db: Database,
  accountId: number,
  id: string | null,
  by: DoneBy,
): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query('select from account where id = $1 for no key update', [accountId]);
    const ofSessions = await tx.query<{ token: string; name: string | null }>(
      `delete from push_token
        where account_id = $1 and ($2::text is null or ${idOf('token')} = $2)
       returning token, name`,
      [accountId, id],
    );
    const ofApn = await tx.query<{ removed: string[] }>(
      `with before as (
         select entry, place, $2::text is null or ${idOf(`(entry ->> 'token')`)} = $2 as goes
           from account
          cross join jsonb_array_elements(apn) with ordinality as e (entry, place)
          where id = $1
       )
       update account
          set apn = (select coalesce(jsonb_agg(entry order by place), '[]') from before where goes is not true)
        where id = $1 and exists (select from before where goes)
       returning array(select entry ->> 'token' from before where goes) as removed`,
      [accountId, id],
    );
    const removed = new Set([
      ...ofSessions.rows.map(({ token }) => token),
      ...(ofApn.rows[0]?.removed ?? []),
    ]);
    if (removed.size === 0) {
      if (id === null) return;
      throw new DomainError('not-found', 'There is no such push token.');
    }
    const name = ofSessions.rows[0]?.name ?? null;
    const details: AuditDetails =
      id === null ? { tokens: removed.size } : { tokenId: id, ...(name === null ? {} : { name }) };
    await insertEntry(tx, accountId, { kind: 'push-token-removed', ...by, details });
  });
}

/** How many tokens each session of an account has added; sessions without any are missing. */
export async function countTokensOfSessions(
  sql: Sql,
  accountId: number,
): Promise<Map<string, number>> {
  const { rows } = await sql.query<{ sessionId: string; tokens: number }>(
    `select session_id as "sessionId", count(*)::integer as tokens
       from push_token where account_id = $1 group by session_id`,
    [accountId],
  );
  return new Map(rows.map(({ sessionId, tokens }) => [sessionId, tokens]));
}

/** Removes the tokens of ended sessions; null: of all sessions of the account. */
export async function forgetTokensOf(
  sql: Sql,
  accountId: number,
  sessionIds: readonly string[] | null,
): Promise<void> {
  await sql.query(
    'delete from push_token where account_id = $1 and ($2::uuid[] is null or session_id = any ($2))',
    [accountId, sessionIds],
  );
}

const sessionsAPiece = 500;

/**
 * Deletes the tokens of sessions that are over, however they ended: they may have expired, or been lost with the
 * session store. `isLive` rejects while that store is unreachable; nothing is deleted then.
 */
export async function forgetTokensOfEnded(
  sql: Sql,
  isLive: (sessionId: string) => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  let after = '00000000-0000-0000-0000-000000000000';
  while (!signal.aborted) {
    const { rows } = await sql.query<{ id: string }>(
      `select distinct session_id as id from push_token where session_id > $1 order by 1 limit $2`,
      [after, sessionsAPiece],
    );
    const live = await Promise.all(rows.map(({ id }) => isLive(id)));
    const ended = rows.filter((_, place) => live[place] === false).map(({ id }) => id);
    if (ended.length > 0)
      await sql.query('delete from push_token where session_id = any ($1::uuid[])', [ended]);
    if (rows.length < sessionsAPiece) return;
    after = rows.at(-1)?.id ?? after;
  }
}
