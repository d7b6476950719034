import { randomUUID } from 'node:crypto';
import { forgetTokensOf } from '../accounts/push-tokens.ts';
import { createAuthentication, createKeyAuthentication } from '../api-keys/api-keys.ts';
import { intermittentAmong } from '../devices/schema.ts';
import { DomainError } from '../errors.ts';
import type { WalkAlarms } from '../events/feed.ts';
import {
  createEventSource,
  createEventBroadcaster,
  type EventBroadcaster,
} from '../events/stream.ts';
import type { Account } from '../http/request.ts';
import type { Route } from '../http/route.ts';
import type { ImportPorts } from '../imports/imports.ts';
import { importRoutes } from '../imports/routes.ts';
import { noteLate } from '../alarms/values.ts';
import { lockDevices, noteImported } from '../ingest/imported.ts';
import { checkSense, checkTime } from '../ingest/rules/measurements.ts';
import { whyUnwritable } from '../lib/redis.ts';
import { createCommandSource } from '../commands/stream.ts';
import { createLiveBroadcaster, createValueSource } from '../live/live.ts';
import { addMeasurements, createKnownSeries, storeCounted } from '../measurements/store.ts';
import { createPresenceSource } from '../presence/presence.ts';
import { addImported, findActivity } from '../quotas/activity.ts';
import type { Exports } from '../quotas/exports.ts';
import { startDatabaseSessions } from '../sessions/database.ts';
import { startRedisSessions } from '../sessions/redis.ts';
import { createSessions, type Sessions } from '../sessions/sessions.ts';
import type { SessionStore } from '../sessions/store.ts';
import { createReaches, type Reaches } from '../streams/reach.ts';
import { streamsRoutes } from '../streams/routes.ts';
import { type StreamCount, SubscriberBudget } from '../streams/subscriber.ts';
import type { TicketDeps, Tickets } from '../streams/tickets.ts';
import { writeEndedSessions } from './background.ts';
import { answers, type HealthCheck } from './lifecycle.ts';
import { type Shared, tellOfRedis } from './shared.ts';

/** No stream is silent for longer, and its reader's access is checked as often. */
const heartbeatMs = 15_000;
/** How long a reader may leave a piece unread. */
const patienceMs = 30_000;

type StreamParts = {
  auth: Pick<Auth, 'authenticate'>;
  tickets: Tickets;
  streams: StreamCount;
  exports: Exports;
  walkAlarms: WalkAlarms;
};

/** The streams of this process: event streams, which have routes of their own, and streams of several kinds. */
export function createStreams(
  shared: Shared,
  { auth, tickets, streams, exports, walkAlarms }: StreamParts,
): { eventBroadcaster: EventBroadcaster; reaches: Reaches; routes: Route[] } {
  const { db, bus, monotonicClock } = shared;
  const log = shared.log.child({ component: 'http' });
  const reaches = createReaches(db, bus);
  const intermittent = new Set(intermittentAmong(shared.config.connectors));
  const isIntermittent = (connectorId: number) => intermittent.has(connectorId);
  const budget = new SubscriberBudget(shared.memory.streamBytes);
  const eventBroadcaster = createEventBroadcaster({ db, bus, heartbeatMs, monotonicClock, budget });
  const liveBroadcaster = createLiveBroadcaster({
    db,
    bus,
    process: randomUUID(),
    heartbeatMs,
    monotonicClock,
    budget,
    onError: (err) =>
      log.warn(
        { event: 'streams.position-unread', err },
        'Committed events could not be read; streams that resume will repeat more of them.',
      ),
  });
  const routes = streamsRoutes({
    bus,
    heartbeatMs,
    patienceMs,
    streams,
    tickets,
    authenticate: auth.authenticate,
    onAccountDisabled: shared.disabled.onDisabled,
    reaches,
    sources: {
      events: createEventSource({ db, broadcaster: eventBroadcaster, exports, walkAlarms }),
      measurements: createValueSource({ db, broadcaster: liveBroadcaster, exports }),
      devices: createPresenceSource({ bus, heartbeatMs, monotonicClock, budget, isIntermittent }),
      commands: createCommandSource({
        db,
        bus,
        heartbeatMs,
        monotonicClock,
        budget,
        onError: (err) =>
          log.warn(
            { event: 'streams.commands-unread', err },
            'Changed commands could not be read; their streams are told to request the list again.',
          ),
      }),
    },
  });
  return { eventBroadcaster, reaches, routes };
}

const dayMs = 86_400_000;
/** As often as stored data is estimated, which is every hour. */
const fullForSeconds = 3_600;

/** Imports, under the rules for messages of devices. */
export function listImportRoutes(
  shared: Shared,
  { authenticate, othersWait }: Pick<ImportPorts, 'authenticate' | 'othersWait'>,
): Route[] {
  const { config, db, clock, monotonicClock, limitsOf, requests } = shared;
  const known = createKnownSeries();
  // A new connection may lead to another server that took over without everything the previous one had.
  db.pool.on('connect', known.clear);
  const { maxAheadMs } = config.ingest;
  const limits = { maxAheadMs, doubtSpanMs: shared.believed.doubtSpanMs };
  return importRoutes({
    db,
    clock,
    monotonicClock,
    limitOf: (accountId) => limitsOf(accountId).imports,
    authenticate,
    othersWait,
    check: ({ sId, ts, val, long }, senses, arrivedTs) =>
      checkSense(senses, sId, long === undefined ? val : null, '') ??
      checkTime(ts, { arrivedTs, limits }, shared.kept.days().measurementsDays * dayMs, '/ts'),
    add: (tx, rows) => addMeasurements(tx, rows, known),
    store: (tx, rows) => storeCounted(tx, rows, known),
    lockDevices: lockDevices,
    async note(tx, rows, arrivedTs) {
      await noteImported(tx, rows, arrivedTs);
      await noteLate(tx, rangesOf(rows));
    },
    count(tx, accountId, rows, added) {
      requests.note(accountId, monotonicClock());
      return addImported(tx, accountId, countByDay(rows, added / rows.length));
    },
    async checkStorage(accountId) {
      const { storedBytes: used } = await findActivity(db, accountId, config.retention);
      const limit = limitsOf(accountId).storedBytes;
      if (used < limit) return;
      const message = `The quota storedBytes is used up: ${used} of ${limit}.`;
      throw new DomainError('unavailable', message, {
        retryAfterSeconds: fullForSeconds,
        exceeded: { quota: 'storedBytes', limit, used },
      });
    },
  });
}

/** From the first to the last measurement of each sense; ms. */
function rangesOf(rows: readonly { deviceId: number; sId: string; ts: number }[]) {
  const ranges = new Map<string, { deviceId: number; sId: string; fromTs: number; toTs: number }>();
  for (const { deviceId, sId, ts } of rows) {
    const name = `${deviceId} ${sId}`;
    const { fromTs, toTs } = ranges.get(name) ?? { fromTs: ts, toTs: ts };
    ranges.set(name, { deviceId, sId, fromTs: Math.min(fromTs, ts), toTs: Math.max(toTs, ts) });
  }
  return [...ranges.values()];
}

/** The number of rows per day since 1970 (UTC), multiplied by `part`. */
function countByDay(rows: readonly { ts: number }[], part: number): Map<number, number> {
  const days = Map.groupBy(rows, ({ ts }) => Math.floor(ts / dayMs));
  return new Map([...days].map(([day, { length }]) => [day, Math.ceil(length * part)]));
}

/** Authenticates people and programs: sessions and API keys. */
export type Auth = {
  sessions: Sessions;
  /** The account of a bearer token, which is a session's or an API key. Throws `unauthenticated`. */
  authenticate: (token: string) => Promise<Account>;
  /** The account of a session or an API key by its identifier. Throws `unauthenticated`. */
  findHolder: TicketDeps['findHolder'];
  areSessionsReachable: () => Promise<boolean>;
  /** Rejects with `unavailable` while the store is away. */
  isLive: (sessionId: string) => Promise<boolean>;
};

const noSession = '00000000-0000-4000-8000-000000000000';

export async function startAuth(shared: Shared): Promise<Auth> {
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
    ...createAuthentication(keys, sessions),
    areSessionsReachable: () => answers(() => store.find(noSession, clock())),
    isLive: async (sessionId) => (await store.find(sessionId, clock())) !== null,
  };
}

/** After a failover to another server, this Redis may be a replica that still answers every read. */
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
            ? 'Redis is a read-only replica: nobody can log in or stay logged in until REDIS_URL ' +
              'leads to the primary.'
            : 'Redis refuses writes: nobody can log in or stay logged in.';
        return { reason, text, details: { err } };
      },
    );
}

async function startSessionStore({
  config,
  log,
  db,
  disposables,
  believed,
}: Shared): Promise<SessionStore> {
  const sessionLog = log.child({ component: 'sessions' });
  const onError = (err: unknown) =>
    sessionLog.warn({ event: 'sessions.degraded', err }, 'The session store does not answer.');
  const onBack = () => tellOfRedis(sessionLog);
  const store =
    config.redisUrl === null
      ? startDatabaseSessions(db, { believedTs: believed.believedTs, onError })
      : await startRedisSessions({ url: config.redisUrl, onError, onBack });
  disposables.add('sessions', () => store.close());
  return store;
}

function startKeys({ log, db, clock, disabled }: Shared) {
  const keysLog = log.child({ component: 'keys' });
  const onError = (err: unknown) =>
    keysLog.warn(
      { event: 'keys.use-unwritten', err },
      'The time at which an API key was last used could not be stored.',
    );
  return createKeyAuthentication({ db, clock, isDisabled: disabled.has, onError });
}
