import { randomUUID } from 'node:crypto';
import { asyncApiDocument } from '../../connector/device/asyncapi.ts';
import type { Connector } from '../../connector/mqtt/server.ts';
import { memoryLimiters, type MakeLimiter } from '../accounts/limiters.ts';
import { createLoginRates } from '../accounts/login-rates.ts';
import { createPasswords } from '../accounts/passwords.ts';
import { createRegistrationLimit } from '../accounts/registration-limit.ts';
import { redisLimiters } from '../accounts/redis-limiters.ts';
import { accountsRoutes } from '../accounts/routes.ts';
import { createThrottle } from '../accounts/throttle.ts';
import { auditRoutes } from '../audit/routes.ts';
import type { FailedJob } from '../history/failed-jobs.ts';
import { readHistoryKind } from '../history/kind.ts';
import { purgeDevices } from '../history/purge.ts';
import { applyRetention } from '../history/retention.ts';
import { startUpkeep } from '../history/upkeep.ts';
import { noSuchDevice } from '../devices/no-such-device.ts';
import { findDeviceId } from '../devices/queries.ts';
import { createDeviceRemoval } from '../devices/remove-devices.ts';
import { deviceRoutes } from '../devices/routes.ts';
import { createStreamCount } from '../events/count-streams.ts';
import { eventRoutes } from '../events/routes.ts';
import { trustProxies } from '../http/address.ts';
import { docsRoutes } from '../http/docs.ts';
import type { Route } from '../http/route.ts';
import { startHttp } from '../http/server.ts';
import type { HttpServer, Upgrade } from '../http/server.ts';
import { probeRoutes } from '../http/probes.ts';
import { statusRoutes } from '../http/status.ts';
import { findNewest } from '../measurements/newest.ts';
import { measurementRoutes } from '../measurements/routes.ts';
import { webhookDocs } from '../notifications/hook-payload.ts';
import { notificationRoutes } from '../notifications/routes.ts';
import { removeUnusedProfiles } from '../profiles/remove-unused.ts';
import { profileRoutes } from '../profiles/routes.ts';
import { purposeRoutes } from '../purposes/routes.ts';
import { compactActivity } from '../quotas/activity-queries.ts';
import { createExports } from '../quotas/exports.ts';
import { createRequestRate } from '../quotas/request-rate.ts';
import { quotaRoutes } from '../quotas/routes.ts';
import { closeRedis, connectRedis } from '../lib/redis.ts';
import { startDatabaseSessions } from '../sessions/database.ts';
import { createSessions } from '../sessions/sessions.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { startRedisSessions } from '../sessions/redis.ts';
import type { SessionStore } from '../sessions/store.ts';
import { version } from '../version.ts';
import { startAccountMail } from './account-mail.ts';
import { forgetOldEntries, writeEndedSessions } from './audit.ts';
import { listBrokerRoutes } from './broker-hooks.ts';
import { listSeenBridges } from './bridges-seen.ts';
import { listConnectors } from './connector-addresses.ts';
import { listContactRoutes } from './contacts.ts';
import { answerOf, answers, databaseAnswers } from './health.ts';
import { tellOfRedis, type Shared } from './shared.ts';
import { createInstallWarnings } from './install-warnings.ts';

/** The half that apps and dashboards talk to. `connector`: the one in this process, if any. */
export async function startApi(shared: Shared, connector: Connector | null): Promise<HttpServer> {
  const { config, log, db, metrics, clock, monotonicClock } = shared;
  const sessionStore = await startSessionStore(shared);
  const sessions = createSessions({
    store: sessionStore,
    keys: shared.keys,
    clock,
    limitOf: (accountId) => shared.limitsOf(accountId).sessions,
    onRevoked: (revoked) => shared.bus.publish('revoked', revoked),
    isDisabled: shared.disabled.has,
    onEnded: writeEndedSessions(shared),
  });
  const routes = await listRoutes(shared, sessions, connector, () => http.port);
  const status = statusRoutes({
    findTroubles: async () => {
      const isReachable = () => answers(() => sessionStore.find(noSession, clock()));
      const [database, sessionsUp] = await Promise.all([databaseAnswers(db), isReachable()]);
      return [...(database ? [] : ['database']), ...(sessionsUp ? [] : ['sessions'])];
    },
    listBridges: async () => (await answerOf(() => listSeenBridges(db, config.connectors))) ?? [],
  });
  const all = [...routes, ...status, ...probeRoutes(shared.readiness)];
  const http: HttpServer = await startHttp({
    ...config.httpListen,
    routes: [
      ...all,
      ...docsRoutes(all, { version, getAsyncApi: asyncApiDocument, webhooks: webhookDocs }),
    ],
    authenticate: sessions.authenticate,
    takeRequest: createRequestRate(shared.limitsOf, monotonicClock),
    log: log.child({ component: 'http' }),
    clock,
    observe: metrics.observeHttp,
    ...config.http,
    roomBytes: shared.memory.requestBytes,
    isShort: shared.memory.isShort,
    isLeaving: shared.readiness.isStopping,
    upgrades: connector ? { '/mqtt': webSocketsOf(connector, config.http.trustedProxies) } : {},
  });
  shared.publicUrl.listensOn(http.port);
  shared.edges.add('HTTP', (withinMs) => http.close(withinMs));
  return http;
}

/** Behind a trusted proxy a WebSocket's address is the one that the proxy names. */
function webSocketsOf(connector: Connector, trustedProxies: string[]): Upgrade {
  const findAddress = trustProxies(trustedProxies);
  return (request, socket, head) => {
    const named = String(request.headers['x-forwarded-for'] ?? '');
    const address = findAddress(request.socket.remoteAddress ?? '', named);
    connector.acceptWebSocket(request, socket, head, address);
  };
}

const noSession = '00000000-0000-4000-8000-000000000000';

async function startSessionStore({ config, log, db, releases }: Shared): Promise<SessionStore> {
  const sessionLog = log.child({ component: 'sessions' });
  const onError = (err: unknown) =>
    sessionLog.warn({ event: 'sessions.degraded', err }, 'The store of sessions does not answer.');
  const onBack = () => tellOfRedis(sessionLog);
  const store =
    config.redisUrl === null
      ? startDatabaseSessions(db, { onError })
      : await startRedisSessions({ url: config.redisUrl, onError, onBack });
  releases.add('sessions', () => store.close());
  return store;
}

async function listRoutes(
  shared: Shared,
  sessions: Sessions,
  connector: Connector | null,
  httpPort: () => number,
): Promise<Route[]> {
  const { config, db, bus, keys, monotonicClock, limitsOf } = shared;
  const removal = await startHistoryCare(shared);
  const { failedLogins, openRegistration, registrationsPerAddress } = config.accounts;
  const { quotas } = config;
  const streams = createStreamCount((accountId) => limitsOf(accountId).streams);
  const exports = createExports({
    limitOf: (accountId) => limitsOf(accountId).exports,
    nowMs: monotonicClock,
  });
  const counters = {
    streams: async (accountId: number) => streams.used(accountId),
    sessions: async (accountId: number) => (await sessions.list(accountId)).length,
  };
  const limiters = await startLimiters(shared);
  const warnings = createInstallWarnings(shared);
  const findId = (accountId: number, uuid: string) => findDeviceId(db, accountId, uuid);
  const getDeviceId = async (accountId: number, uuid: string) => {
    const deviceId = await findId(accountId, uuid);
    if (deviceId === null) throw noSuchDevice();
    return deviceId;
  };
  return [
    ...accountsRoutes({
      db,
      sessions,
      passwords: createPasswords(),
      throttle: createThrottle(failedLogins, limiters),
      countLogin: createLoginRates({ ...config.quotas, loginsOf: shared.loginsOf }, limiters),
      ...startAccountMail(shared),
      openRegistration,
      countRegistration: createRegistrationLimit(registrationsPerAddress, limiters),
      onDevicesRemoved: removal.finishRemoval,
    }),
    ...auditRoutes({ db }),
    ...deviceRoutes({
      db,
      bus,
      keys: keys.deviceTokens,
      listConnectors: () => listConnectors(config, connector, httpPort()),
      removeDevice: removal.removeDevice,
      findNewest,
      quotas,
      limitsOf,
      exports,
      newUuid: randomUUID,
    }),
    ...purposeRoutes({ db, quotas, limitsOf, warnOfNumbers: warnings.warnOfNumbers }),
    ...quotaRoutes({ db, quotas, retention: config.retention, counters }),
    ...profileRoutes({ db, bus, quotas, limitsOf, warnOfSms: warnings.warnOfSms }),
    ...eventRoutes({
      db,
      bus,
      getDeviceId,
      authenticate: sessions.authenticate,
      streams,
      exports,
      monotonicClock,
      onAccountDisabled: shared.disabled.onDisabled,
    }),
    ...measurementRoutes({ db, kind: await readHistoryKind(db), getDeviceId, exports }),
    ...notificationRoutes({ db, findDeviceId: findId }),
    ...listContactRoutes(shared),
    ...listBrokerRoutes(shared, limiters),
  ];
}

/** What counts attempts of strangers: for all processes where there is a Redis. */
async function startLimiters({ config, log, releases }: Shared): Promise<MakeLimiter> {
  if (config.redisUrl === null) return memoryLimiters;
  const accountsLog = log.child({ component: 'accounts' });
  const onError = (err: unknown) =>
    accountsLog.warn(
      { event: 'attempts.local', err },
      'Redis does not answer: attempts to log in are counted by this process alone.',
    );
  const onBack = () => tellOfRedis(accountsLog);
  const redis = await connectRedis({ url: config.redisUrl, onError, onBack });
  releases.add('counters of attempts', () => closeRedis(redis));
  return redisLimiters(redis);
}

/** Keeps the history as long as it is asked for, and clears what removed devices left. */
async function startHistoryCare(shared: Shared) {
  const { config, log, db, bus, clock, releases } = shared;
  await applyRetention(db, config.retention);
  const historyLog = log.child({ component: 'history' });
  const onError = (err: unknown) =>
    historyLog.warn(
      { event: 'history.upkeep-failed', err },
      'The upkeep of the history failed; it is tried again in an hour.',
    );
  const onFailedJobs = (jobs: FailedJob[]) =>
    historyLog.warn(
      { event: 'history.jobs-failed', jobs },
      'Jobs of TimescaleDB on the history failed; it tries them again.',
    );
  const { retention } = config;
  const onPurgeError = (err: unknown) =>
    historyLog.warn(
      { event: 'history.purge-failed', err },
      'The history of a removed device could not be deleted; it is tried again within the hour.',
    );
  const removal = createDeviceRemoval({ db, bus, purge: purgeDevices, onPurgeError });
  const chores = [
    (signal: AbortSignal) => removal.resume(signal).catch(onPurgeError),
    (signal: AbortSignal) => removeUnusedProfiles(db, signal),
    () => compactActivity(db, retention),
    forgetOldEntries(shared),
  ];
  releases.add(
    'upkeep of the history',
    startUpkeep({ db, retention, clock, onError, onFailedJobs, chores }),
  );
  return removal;
}
