import { z } from 'zod';
import { doneBy, insertEntry } from '../audit/audit.ts';
import { Language } from '../contract/values.ts';
import { sayWarnings, SomeWarnings, warnOfUnknown, warnOfUnknownTo } from '../contract/warnings.ts';
import { DomainError } from '../errors.ts';
import { createRefuseSlowly } from '../http/errors.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import {
  cursorQuery,
  cursorTs,
  exampleIds,
  exampleLogin,
  limitQuery,
  linkNext,
  MessageResponse,
  timestamp,
  timestampQuery,
  TimestampResponse,
  uuidParam,
} from '../http/schema.ts';
import {
  type AccountsDeps,
  type AccountsOptions,
  changePassword,
  deleteAccount,
  endSession,
  logIn,
  type LoginOwner,
  registerAccount,
} from './account.ts';
import { askerOfAccount } from './login-limits.ts';
import { createRunFairly } from './passwords.ts';
import { countTokensOfSessions, pushTokenRoutes } from './push-tokens.ts';
import {
  getAccount,
  insertAccountEvent,
  listAccountEvents,
  listLogins,
  updateAccount,
} from './queries.ts';
import { recoveryPages, recoveryRoutes } from './recovery.ts';
import {
  AccountEvent,
  AccountLogin,
  AccountUpdate,
  NewCredentials,
  PasswordChange,
  SessionEntry,
} from './schema.ts';

/**
 * Each holds a database connection, and ending its sessions may need another one: the limit is below the smallest pool
 * that can be configured, so that one of them can always finish.
 */
const fairness = { parallel: 3, perAddress: 2, maxWaiting: 100 };

/** Specification 4.1 and 4.2; beyond it sessions, the change of a password, and push tokens. */
export function accountsRoutes(options: AccountsOptions): Route[] {
  const deps: AccountsDeps = {
    ...options,
    runFairly: createRunFairly(fairness),
    revokeSession: options.sessions.revoke,
    revokeSessions: options.sessions.revokeAll,
  };
  return [
    ...loginRoutes(deps),
    ...accountRoutes(deps),
    ...sessionRoutes(deps),
    ...pushTokenRoutes({
      db: options.db,
      listSessions: options.sessions.list,
      limitOf: options.pushTokensOf,
      onPushTokens: options.onPushTokens,
    }),
    ...recoveryRoutes(deps),
    ...recoveryPages(deps),
  ];
}

const TokenPairResponse = z
  .object({
    data: z
      .object({
        token: z.string().meta({ description: 'Access token, valid for 15 minutes.' }),
        refreshToken: z.string().meta({ description: 'Valid once, for 30 days.' }),
      })
      .meta({ id: 'TokenPair' }),
  })
  .meta({ id: 'TokenPairResponse' });

const AccountTokenResponse = z.object({
  timestamp,
  accountAuthUuid: z.guid(),
  accountAuthToken: z.string().meta({ description: 'Valid for 30 days after its last use.' }),
});

/** All routes that issue tokens: specification 4.1, and registration and login of 4.2. */
function loginRoutes(deps: AccountsDeps): Route[] {
  const { sessions } = deps;
  const refuseSlowly = createRefuseSlowly(deps.refusalPauseMs);
  const enter = <S extends { sessionId: string }>(
    { body, request }: { body: AccountLogin; request: RequestInfo },
    start: (owner: LoginOwner) => Promise<S>,
  ) => {
    const hasGone = () => request.signal.aborted;
    const { address, receivedTs } = request;
    const userAgent = request.header('user-agent');
    const login = { ...body, address, userAgent, receivedTs, hasGone };
    return refuseSlowly(() => logIn(deps, login, start), request);
  };
  return [
    defineRoute({
      name: 'logIn',
      method: 'post',
      path: '/v1/auth/login',
      summary: 'Log in and receive an access and a refresh token',
      tag: 'Authentication',
      auth: 'none',
      errors: [401, 403, 429],
      body: AccountLogin,
      example: exampleLogin,
      response: TokenPairResponse,
      handler: async ({ body, request }) => {
        const session = await enter({ body, request }, sessions.startPair);
        const { token, refreshToken } = session;
        return { data: { token, refreshToken } };
      },
    }),
    defineRoute({
      name: 'refreshTokens',
      method: 'post',
      path: '/v1/auth/refresh',
      summary: 'Exchange a refresh token for a new pair',
      description:
        'The Authorization header carries the access token of the same session; it may have ' +
        'expired. A refresh token can be used once. Within 10 s it returns the same pair ' +
        'again; using it again later ends its session.',
      tag: 'Authentication',
      // The token may have expired; no other route accepts that.
      auth: 'token',
      errors: [],
      body: z.object({ refreshToken: z.string() }),
      example: { refreshToken: 'the refreshToken of the previous answer' },
      response: TokenPairResponse,
      handler: async ({ body, account, request: { address } }) => ({
        data: await sessions.refresh(account.token, body.refreshToken, address),
      }),
    }),
    defineRoute({
      name: 'registerAccount',
      method: 'post',
      path: '/v2/accounts',
      summary: 'Register New Account',
      tag: 'Accounts',
      auth: 'none',
      errors: [403, 409, 429],
      body: NewCredentials,
      example: exampleLogin,
      response: AccountTokenResponse.extend({ warnings: SomeWarnings }),
      warnOf: warnOfUnknown,
      handler: async ({ body, request, warnings }) => {
        const { address, receivedTs } = request;
        if (!deps.openRegistration) {
          throw new DomainError('forbidden', 'The administrator creates accounts.');
        }
        await deps.countRegistration(address);
        const { accountId, accountUuid } = await registerAccount(
          deps,
          { ...body, address },
          { actor: { by: 'nobody', sessionId: null, address }, ts: receivedTs },
        );
        const { token } = await sessions.startAccountSession({ accountId, accountUuid });
        return {
          timestamp: request.now(),
          accountAuthUuid: accountUuid,
          accountAuthToken: token,
          ...sayWarnings(warnings),
        };
      },
    }),
    defineRoute({
      name: 'authenticateAccount',
      method: 'post',
      path: '/v2/accounts/login',
      summary: 'Authenticate Account',
      tag: 'Accounts',
      auth: 'none',
      errors: [401, 403, 429],
      body: AccountLogin,
      example: exampleLogin,
      response: AccountTokenResponse,
      handler: async ({ body, request }) => {
        const login = await enter({ body, request }, sessions.startAccountSession);
        const { accountUuid, token } = login;
        const timestamp = request.now();
        return { timestamp, accountAuthUuid: accountUuid, accountAuthToken: token };
      },
    }),
  ];
}

const EventsQuery = z.object({
  limit: limitQuery(10),
  start: timestampQuery.optional(),
  end: timestampQuery.optional(),
  cursor: cursorQuery(z.object({ ts: cursorTs, id: z.int() })),
});

/** Specification 4.2, without the routes that issue tokens. */
function accountRoutes(deps: AccountsDeps): Route[] {
  const { db } = deps;
  return [
    defineRoute({
      name: 'getAccount',
      method: 'get',
      path: '/v2/accounts',
      summary: 'Get Account',
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      response: z.object({
        timestamp,
        email: z.string(),
        name: z.string().nullable(),
        timeZone: z.string(),
        language: Language,
      }),
      handler: async ({ account: { accountId }, request }) => {
        const { email, name, timeZone, language } = await getAccount(db, accountId);
        return {
          timestamp: request.now(),
          email,
          name,
          timeZone: timeZone ?? 'UTC',
          language: language ?? 'en',
        };
      },
    }),
    defineRoute({
      name: 'updateAccount',
      method: 'put',
      path: '/v2/accounts',
      summary: 'Update Account',
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      body: AccountUpdate,
      example: { name: 'Ada', timeZone: 'Europe/Berlin', language: 'en' },
      response: TimestampResponse.extend({ warnings: SomeWarnings }),
      warnOf: warnOfUnknownTo(AccountUpdate, z.object({ timestamp })),
      handler: async ({ account, body, request, warnings }) => {
        const { accountId } = account;
        const by = doneBy(account, request);
        const details = { changed: Object.keys(body) };
        await db.transaction(async (tx) => {
          await updateAccount(tx, accountId, body);
          await insertAccountEvent(tx, accountId, 'update', by.ts);
          await insertEntry(tx, accountId, { kind: 'settings-changed', ...by, details });
          if (body.apn) await deps.onPushTokens?.(tx, accountId, by.ts);
        });
        return { timestamp: request.now(), ...sayWarnings(warnings) };
      },
    }),
    defineRoute({
      name: 'deleteAccount',
      method: 'delete',
      path: '/v2/accounts',
      summary: 'Delete Account',
      description: 'Deletes the account with its devices, purposes, events and measurements.',
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      response: MessageResponse,
      handler: async ({ account: { accountId }, request }) => {
        await deleteAccount(deps, accountId, askerOfAccount(accountId, request.address));
        return { timestamp: request.now(), message: 'The account was deleted.' };
      },
    }),
    defineRoute({
      name: 'listAccountEvents',
      method: 'get',
      path: '/v2/accounts/events',
      summary: 'Get account events',
      tag: 'Accounts',
      auth: 'account',
      errors: [],
      responseHeaders: { Link: 'The next page: `<…>; rel="next"`. Absent on the last page.' },
      query: EventsQuery,
      response: z.object({ timestamp, events: z.array(AccountEvent) }),
      handler: async ({ account, query, request }) => {
        const { events, next } = await listAccountEvents(db, account, query);
        if (next) linkNext(request, next);
        return { timestamp: request.now(), events };
      },
    }),
  ];
}

/** Beyond the specification: lists and ends sessions, and changes the password. */
function sessionRoutes(deps: AccountsDeps): Route[] {
  const { sessions } = deps;
  return [
    defineRoute({
      name: 'changePassword',
      method: 'put',
      path: '/v2/accounts/password',
      summary: 'Change the password',
      description: 'Ends every session of the account, including this one.',
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
        '`address` and `userAgent` say where each session began, as long as the audit trail ' +
        'has the entry.',
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
