import { z } from 'zod';
import { doneBy, type DoneBy, insertEntry } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleIds, MessageResponse, uuidParam } from '../http/schema.ts';
import { type LimitsOf, lockUsage, quotaExceeded } from '../quotas/quotas.ts';
import {
  countKeys,
  deleteKey,
  hashKeyText,
  insertKey,
  KeyList,
  listKeys,
  MadeKey,
  makeKeyText,
  NewKey,
} from './api-keys.ts';

type KeyRouteDeps = {
  db: Database;
  limitsOf: LimitsOf;
  /** A key was revoked. Whatever is open with it must end too. */
  onRevoked: (revoked: { accountId: number; sessionId: string }) => void;
};

const tag = 'API keys';

/** Keys for programs, which then need no password; an addition to the specification. */
export function keyRoutes({ db, limitsOf, onRevoked }: KeyRouteDeps): Route[] {
  return [
    defineRoute({
      name: 'makeApiKey',
      method: 'post',
      path: '/v2/accounts/keys',
      summary: 'Create an API key',
      description:
        'For programs. The key opens what its scopes name, but never the account itself, its ' +
        'sessions, keys or contacts. The key is returned only once; send it as a bearer token.',
      tag,
      auth: 'account',
      takesKey: true,
      errors: [403],
      body: NewKey,
      example: { name: 'Dashboard', scopes: ['devices:read', 'data:read'] },
      response: MadeKey,
      handler: async ({ account, body, request, once }) => {
        if (body.expiresTs !== undefined && body.expiresTs <= request.receivedTs)
          throw refusePast(body.expiresTs);
        const { accountId } = account;
        const limit = limitsOf(accountId).keys;
        return once<{ keyId: string; key: string; timestamp: number }>((keep) =>
          db.transaction(async (tx) => {
            const made = await makeKey(tx, { accountId, limit }, body, doneBy(account, request));
            const answer = { ...made, timestamp: request.now() };
            await keep?.(tx, answer);
            return answer;
          }),
        );
      },
    }),
    defineRoute({
      name: 'listApiKeys',
      method: 'get',
      path: '/v2/accounts/keys',
      summary: 'List API keys',
      tag,
      auth: 'account',
      errors: [],
      response: KeyList,
      handler: async ({ account, request }) => ({
        keys: await listKeys(db, account.accountId),
        timestamp: request.now(),
      }),
    }),
    defineRoute({
      name: 'revokeApiKey',
      method: 'delete',
      path: '/v2/accounts/keys/{keyId}',
      summary: 'Revoke an API key',
      tag,
      auth: 'account',
      errors: [],
      params: z.object({ keyId: uuidParam.meta({ example: exampleIds.key }) }),
      response: MessageResponse,
      handler: async ({ account, params: { keyId }, request }) => {
        const { accountId } = account;
        await revokeKey(db, accountId, keyId, doneBy(account, request));
        onRevoked({ accountId, sessionId: keyId });
        return { timestamp: request.now(), message: 'The API key no longer opens anything.' };
      },
    }),
  ];
}

async function makeKey(
  tx: Sql,
  { accountId, limit }: { accountId: number; limit: number },
  given: NewKey,
  by: DoneBy,
): Promise<{ keyId: string; key: string }> {
  const key = makeKeyText();
  const hash = hashKeyText(key) ?? Buffer.alloc(0);
  await lockUsage(tx, accountId);
  const used = await countKeys(tx, accountId);
  if (used >= limit) throw quotaExceeded({ quota: 'keys', limit, used });
  const keyId = await insertKey(tx, accountId, { ...given, hash, createdTs: by.ts });
  const details = { keyId, name: given.name, scopes: given.scopes, labels: given.labels };
  await insertEntry(tx, accountId, { kind: 'key-made', ...by, details });
  return { keyId, key };
}

async function revokeKey(
  db: Database,
  accountId: number,
  keyId: string,
  by: DoneBy,
): Promise<void> {
  await db.transaction(async (tx) => {
    const name = await deleteKey(tx, accountId, keyId);
    if (name === null) throw new DomainError('not-found', 'There is no such API key.');
    await insertEntry(tx, accountId, { kind: 'key-revoked', ...by, details: { keyId, name } });
  });
}

function refusePast(expiresTs: number): DomainError {
  const problems = [{ path: '/expiresTs', message: `${expiresTs} is in the past` }];
  return new DomainError('invalid-input', 'The request is not valid.', { problems });
}
