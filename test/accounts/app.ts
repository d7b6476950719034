import { pino } from 'pino';
import { startRefusalLog } from '../../src/audit/refusals.ts';
import { auditRoutes } from '../../src/audit/audit.ts';
import { startDisabledAccounts } from '../../src/accounts/disabled.ts';
import {
  createLinkMailLimit,
  createLoginRates,
  createRegistrationLimit,
  createThrottle,
  memoryLimiters,
  redisLimiters,
} from '../../src/accounts/login-limits.ts';
import { forgetTokensOf } from '../../src/accounts/push-tokens.ts';
import { createPasswords } from '../../src/accounts/passwords.ts';
import { accountsRoutes } from '../../src/accounts/routes.ts';
import type { BusMessages } from '../../src/bus/bus.ts';
import { writeEndedSessions } from '../../src/assembly/background.ts';
import { forgetPersons } from '../../src/history/clear-removed.ts';
import { startHttp, type HttpOptions } from '../../src/http/server.ts';
import { statusRoutes } from '../../src/http/health.ts';
import { deriveKeys } from '../../src/config/keys.ts';
import { closeRedis, connectRedis } from '../../src/lib/redis.ts';
import { startDatabaseSessions } from '../../src/sessions/database.ts';
import { createSessions } from '../../src/sessions/sessions.ts';
import { startRedisSessions } from '../../src/sessions/redis.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

export type AppOptions = {
  redisUrl?: string;
  /** Another process of the same installation, with the same database. */
  database?: TestDatabase;
  openRegistration?: boolean;
  maxWaiting?: number;
  /** Failed logins for one account from one address, and for all accounts from one address. */
  attempts?: { perAccount: number; perAddress: number };
  registrationsPerAddress?: number;
  /** How many sessions an account may have; 50. */
  sessions?: number;
  /** How long a refused login waits; 1 ms. */
  refusalPauseMs?: number;
  /** Logins a minute. */
  logins?: Partial<Parameters<typeof createLoginRates>[0] & { loginsPerAccount: number }>;
  /** Mails are queued; nothing sends them here. */
  hasMail?: boolean;
  http?: Partial<HttpOptions>;
};

export type Answer = {
  status: number;
  headers: Headers;
  text: string;
  body: Record<string, unknown>;
};

export type App = Awaited<ReturnType<typeof startApp>>;

const keys = deriveKeys('a secret of the tests, long enough to be one');

/** The accounts' part of the service on a port of its own, with a clock that tests can set. */
export async function startApp(options: AppOptions = {}) {
  const database = options.database ?? (await testDatabase());
  const { db } = database;
  const time = { offsetMs: 0, doubtSpanMs: 0 };
  const clock = () => Date.now() + time.offsetMs;
  const revoked: BusMessages['revoked'][] = [];
  const removedAccounts: number[] = [];
  const lines: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(line) });
  const onError = () => {};
  const redis = options.redisUrl ? await connectRedis({ url: options.redisUrl, onError }) : null;
  const store = options.redisUrl
    ? await startRedisSessions({ url: options.redisUrl, onError })
    : startDatabaseSessions(db, { believedTs: Date.now, onError });
  const refusals = startRefusalLog({ db, clock, intervalMs: 50, onError });
  const disabled = await startDisabledAccounts({ db, intervalMs: 50, onError });
  const onRevoked = (message: BusMessages['revoked']) => void revoked.push(message);
  const sessions = createSessions({
    store,
    keys,
    clock,
    doubtSpanMs: () => time.doubtSpanMs,
    limitOf: () => options.sessions ?? 50,
    onRevoked,
    release: (accountId, sessionIds) => forgetTokensOf(db, accountId, sessionIds),
    isDisabled: disabled.has,
    onEnded: writeEndedSessions({ db, clock, log }),
  });
  const limiters = redis ? redisLimiters(redis) : memoryLimiters;
  const routes = [
    ...accountsRoutes({
      db,
      sessions,
      passwords: createPasswords({ maxWaiting: options.maxWaiting ?? 256 }),
      throttle: createThrottle(
        {
          perAccount: { attempts: options.attempts?.perAccount ?? 10, windowSeconds: 300 },
          perAddress: { attempts: options.attempts?.perAddress ?? 50, windowSeconds: 300 },
        },
        limiters,
      ),
      countLogin: createLoginRates(
        {
          loginsOf: (email) =>
            options.logins?.loginsOf?.(email) ?? options.logins?.loginsPerAccount ?? 1_000,
          loginsPerAddress: options.logins?.loginsPerAddress ?? 1_000,
        },
        limiters,
      ),
      refusals,
      refusalPauseMs: options.refusalPauseMs ?? 1,
      openRegistration: options.openRegistration ?? true,
      countLinkMail: createLinkMailLimit(limiters),
      countRegistration: createRegistrationLimit(
        { attempts: options.registrationsPerAddress ?? 1_000, windowSeconds: 300 },
        limiters,
      ),
      forgetPersons,
      pushTokensOf: () => 3,
      onAccountRemoved: (accountId) => void removedAccounts.push(accountId),
      linkKeys: keys.mailLinks,
      hasMail: options.hasMail ?? false,
    }),
    ...auditRoutes({ db }),
    ...statusRoutes({ findFailures: async () => [] }),
  ];
  const authenticate = (token: string) => sessions.authenticate(token);
  const server = await startHttp({
    routes,
    authenticate,
    log,
    clock,
    host: '127.0.0.1',
    port: 0,
    ...options.http,
  });
  const url = `http://127.0.0.1:${server.port}`;

  return {
    url,
    database,
    db,
    routes,
    sessions,
    time,
    revoked,
    refusals,
    disabled,
    removedAccounts,
    lines,
    call: (method: string, path: string, rest: CallOptions = {}) => call(url, method, path, rest),
    async register(email: string, password = 'correct horse') {
      const { body } = await call(url, 'POST', '/v2/accounts', { body: { email, password } });
      return { uuid: String(body['accountAuthUuid']), token: String(body['accountAuthToken']) };
    },
    async close() {
      await server.close();
      await refusals.close();
      await disabled.close();
      await store.close();
      if (redis) await closeRedis(redis);
      if (!options.database) await database.drop();
    },
  };
}

export type CallOptions = { token?: string; body?: unknown; headers?: Record<string, string> };

export async function call(
  url: string,
  method: string,
  path: string,
  { token, body, headers }: CallOptions = {},
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  const parsed = (isJson && text !== '' ? JSON.parse(text) : {}) as Answer['body'];
  return { status: response.status, headers: response.headers, text, body: parsed };
}
