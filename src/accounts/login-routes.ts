import { z } from 'zod';
import { warnOfUnknown } from '../contract/unknown-members.ts';
import { sayWarnings, SomeWarnings } from '../contract/warnings.ts';
import { DomainError } from '../errors.ts';
import { createRefuseSlowly } from '../http/refuse-slowly.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { exampleLogin, timestamp } from '../http/schema.ts';
import { logIn, type LoginOwner } from './account.ts';
import { registerAccount } from './register.ts';
import type { AccountsDeps } from './deps.ts';
import { AccountLogin, NewCredentials } from './schema.ts';

const TokenPairResponse = z
  .object({
    data: z
      .object({
        token: z.string().meta({ description: 'Access token, good for 15 minutes.' }),
        refreshToken: z.string().meta({ description: 'Good once, for 30 days.' }),
      })
      .meta({ id: 'TokenPair' }),
  })
  .meta({ id: 'TokenPairResponse' });

const AccountTokenResponse = z.object({
  timestamp,
  accountAuthUuid: z.guid(),
  accountAuthToken: z.string().meta({ description: 'Good for 30 days from its last use.' }),
});

/** Everything that hands out tokens: specification 4.1, and registration and login of 4.2. */
export function loginRoutes(deps: AccountsDeps): Route[] {
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
      summary: 'Log in, for an access and a refresh token',
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
        'The Authorization header carries the access token of the same session, which may have ' +
        'expired. A refresh token is good once: for 10 s it gives the same pair again, later using it ' +
        'again ends its session.',
      tag: 'Authentication',
      // It may have expired, which no other route takes.
      auth: 'token',
      errors: [],
      body: z.object({ refreshToken: z.string() }),
      example: { refreshToken: 'the refreshToken of the last answer' },
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
          throw new DomainError('forbidden', 'Accounts are issued by the administrator.');
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
