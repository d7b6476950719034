import { forgetTokensOf } from '../accounts/push-tokens.ts';
import { createKeyAuthentication } from '../api-keys/authenticate.ts';
import { isKeyText } from '../api-keys/key-text.ts';
import type { Account } from '../http/request.ts';
import { whyUnwritable } from '../lib/redis.ts';
import { startDatabaseSessions } from '../sessions/database.ts';
import { startRedisSessions } from '../sessions/redis.ts';
import { createSessions, type Sessions } from '../sessions/sessions.ts';
import type { SessionStore } from '../sessions/store.ts';
import type { TicketDeps } from '../streams/tickets.ts';
import { writeEndedSessions } from './audit.ts';
import { answers, type HealthCheck } from './lifecycle.ts';
import { tellOfRedis, type Shared } from './shared.ts';

/** What lets people and programs in: sessions, and keys. */
export type Doors = {
  sessions: Sessions;
  /** The account of a bearer token, be it a session's or a key. Throws `unauthenticated`. */
  authenticate: (token: string) => Promise<Account>;
  /** The account of a session or a key by its identifier. Throws `unauthenticated`. */
  findHolder: TicketDeps['findHolder'];
  areSessionsReachable: () => Promise<boolean>;
  /** Rejects with `unavailable` while the store is away. */
  isLive: (sessionId: string) => Promise<boolean>;
};

const noSession = '00000000-0000-4000-8000-000000000000';

export async function startDoors(shared: Shared): Promise<Doors> {
  const { clock } = shared;
  const store = await startSessionStore(shared);
  shared.health.add('sessions', checkSessions(store));
  const sessions = createSessions({
    store,
    keys: shared.keys,
    clock,
    doubtSpanMs: shared.believed.doubtSpanMs,
    limitOf: (accountId) => shared.limitsOf(accountId).sessions,
    onRevoked: (revoked) => shared.bus.publish('revoked', revoked),
    release: (accountId, sessionIds) => forgetTokensOf(shared.db, accountId, sessionIds),
    isDisabled: shared.disabled.has,
    onEnded: writeEndedSessions(shared),
  });
  const keys = startKeys(shared);
  return {
    sessions,
    authenticate: (token) =>
      isKeyText(token) ? keys.authenticate(token) : sessions.authenticate(token),
    findHolder: ({ accountId, holderId, isOfKey }) =>
      isOfKey ? keys.find(accountId, holderId) : sessions.find(accountId, holderId),
    areSessionsReachable: () => answers(() => store.find(noSession, clock())),
    isLive: async (sessionId) => (await store.find(sessionId, clock())) !== null,
  };
}

/** Redis as the failover of another leaves it answers everything that only reads. */
function checkSessions(store: SessionStore): HealthCheck {
  return () =>
    store.checkWrites().then(
      () => null,
      (error: unknown) => {
        const { cause: err } = error instanceof Error ? error : {};
        const reason = whyUnwritable(err);
        if (reason === null) return 'unknown';
        const text =
          reason === 'read-only'
            ? 'Redis is a replica that only reads: nobody can log in or go on, until REDIS_URL leads to the primary.'
            : 'Redis refuses to write: nobody can log in or go on.';
        return { reason, text, details: { err } };
      },
    );
}

async function startSessionStore({
  config,
  log,
  db,
  releases,
  believed,
}: Shared): Promise<SessionStore> {
  const sessionLog = log.child({ component: 'sessions' });
  const onError = (err: unknown) =>
    sessionLog.warn({ event: 'sessions.degraded', err }, 'The store of sessions does not answer.');
  const onBack = () => tellOfRedis(sessionLog);
  const store =
    config.redisUrl === null
      ? startDatabaseSessions(db, { believedTs: believed.believedTs, onError })
      : await startRedisSessions({ url: config.redisUrl, onError, onBack });
  releases.add('sessions', () => store.close());
  return store;
}

function startKeys({ log, db, clock, disabled }: Shared) {
  const keysLog = log.child({ component: 'keys' });
  const onError = (err: unknown) =>
    keysLog.warn(
      { event: 'keys.use-unwritten', err },
      'The last use of an API key could not be stored.',
    );
  return createKeyAuthentication({ db, clock, isDisabled: disabled.has, onError });
}
