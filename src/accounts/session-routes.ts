import { z } from 'zod';
import { doneBy } from '../audit/entry.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleIds, exampleLogin, MessageResponse, timestamp } from '../http/schema.ts';
import { TimestampResponse, uuidParam } from '../http/schema.ts';
import { changePassword } from './change-password.ts';
import { endSession } from './end-session.ts';
import type { AccountsDeps } from './deps.ts';
import { PasswordChange, SessionEntry } from './schema.ts';
import { listLogins } from './login-queries.ts';
import { countTokensOfSessions } from './push-tokens.ts';

/** Beyond the specification: where an account is logged in, ending that, and a new password. */
export function sessionRoutes(deps: AccountsDeps): Route[] {
  const { sessions } = deps;
  return [
    defineRoute({
      name: 'changePassword',
      method: 'put',
      path: '/v2/accounts/password',
      summary: 'Change the password',
      description: 'Ends every session of the account, this one too.',
      tag: 'Sessions',
      auth: 'account',
      errors: [403, 429],
      body: PasswordChange,
      example: { oldPassword: exampleLogin.password, newPassword: 'battery staple correct horse' },
      response: TimestampResponse,
      handler: async ({ account, body, request }) => {
        const { accountId } = account;
        await changePassword(deps, { accountId, ...body }, doneBy(account, request));
        return { timestamp: request.now() };
      },
    }),
    defineRoute({
      name: 'listSessions',
      method: 'get',
      path: '/v2/accounts/sessions',
      summary: 'List sessions',
      description:
        'Where each began stands in `address` and `userAgent`, while the audit trail has it.',
      tag: 'Sessions',
      auth: 'account',
      errors: [],
      response: z.object({ timestamp, sessions: z.array(SessionEntry) }),
      handler: async ({ account, request }) => {
        const list = await sessions.list(account.accountId);
        const logins = await listLogins(deps.db, account.accountId);
        const tokens = await countTokensOfSessions(deps.db, account.accountId);
        const entries = list.map(({ sessionId, kind, createdTs, lastUsedTs, expiresTs }) => {
          const current = sessionId === account.sessionId;
          const times = { createdTs, lastUsedTs, expiresTs };
          const pushTokens = tokens.get(sessionId) ?? 0;
          return { id: sessionId, kind, ...times, current, ...logins.get(sessionId), pushTokens };
        });
        return { timestamp: request.now(), sessions: entries };
      },
    }),
    defineRoute({
      name: 'endSession',
      method: 'delete',
      path: '/v2/accounts/sessions/{id}',
      summary: 'End a session',
      tag: 'Sessions',
      auth: 'account',
      errors: [],
      params: z.object({ id: uuidParam.meta({ example: exampleIds.session }) }),
      response: MessageResponse,
      handler: async ({ account, params: { id }, request }) => {
        await endSession(deps, account.accountId, id, doneBy(account, request));
        return { timestamp: request.now(), message: 'The session was ended.' };
      },
    }),
  ];
}
