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
import { createSessions } from '../sessions/manage.ts';
import type { Sessions } from '../sessions/manage.ts';
import { startRedisSessions } from '../sessions/redis.ts';
import type { SessionStore } from '../sessions/sessions.ts';
import { version } from '../version.ts';
import { forgetOldEntries, startRefusals, writeEndedSessions } from './audit.ts';
import { listBrokerRoutes } from './broker-hooks.ts';
import { listSeenBridges } from './bridges-seen.ts';
import { listConnectors } from './connector-addresses.ts';
import { listContactRoutes } from './contacts.ts';
import { answerOf, answers, databaseAnswers } from './health.ts';
import type { Shared } from './shared.ts';
import { createSmsWarnings } from './sms-rules.ts';

/** The half that apps and dashboards talk to. `connector`: the one in this process, if any. */
export async function startApi(shared: Shared, connector: Connector | null): Promise<HttpServer> {
  const { config, log, db, metrics, clock } = shared;
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
    clock,
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
    takeRequest: createRequestRate(shared.limitsOf),
    log,
    clock,
    observe: metrics.observeHttp,
    ...config.http,
    roomBytes: shared.memory.requestBytes,
    isShort: shared.memory.isShort,
    isLeaving: shared.readiness.isStopping,
    upgrades: connector ? { '/mqtt': webSocketsOf(connector, config.http.trustedProxies) } : {},
  });
  shared.publicUrl.listensOn(http.port);
  shared.edges.add((withinMs) => http.close(withinMs));
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
  const onError = (err: unknown) => log.warn({ err }, 'the session store is degraded');
  const store =
    config.redisUrl === null
      ? startDatabaseSessions(db, { onError })
      : await startRedisSessions({ url: config.redisUrl, onError });
  releases.add(() => store.close());
  return store;
}

async function listRoutes(
  shared: Shared,
  sessions: Sessions,
  connector: Connector | null,
  httpPort: () => number,
): Promise<Route[]> {
  const { config, db, bus, keys, clock, limitsOf } = shared;
  const removal = await startHistoryCare(shared);
  const { failedLogins, openRegistration, registrationsPerAddress } = config.accounts;
  const { quotas } = config;
  const streams = createStreamCount((accountId) => limitsOf(accountId).streams);
  const exports = createExports({ limitOf: (accountId) => limitsOf(accountId).exports });
  const counters = {
    streams: async (accountId: number) => streams.used(accountId),
    sessions: async (accountId: number) => (await sessions.list(accountId)).length,
  };
  const limiters = await startLimiters(shared);
  const warnings = createSmsWarnings(db, config);
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
      refusals: startRefusals(shared),
      openRegistration,
      countRegistration: createRegistrationLimit(registrationsPerAddress, limiters),
      onDevicesRemoved: removal.finishRemoval,
      clock,
    }),
    ...auditRoutes({ db, clock }),
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
    }),
    ...purposeRoutes({ db, quotas, limitsOf, warnOfNumbers: warnings.warnOfNumbers }),
    ...quotaRoutes({ db, quotas, retention: config.retention, clock, counters }),
    ...profileRoutes({ db, bus, quotas, limitsOf, warnOfSms: warnings.warnOfSms }),
    ...eventRoutes({
      db,
      bus,
      getDeviceId,
      authenticate: sessions.authenticate,
      streams,
      exports,
      onAccountDisabled: shared.disabled.onDisabled,
    }),
    ...measurementRoutes({ db, kind: await readHistoryKind(db), getDeviceId, clock, exports }),
    ...notificationRoutes({ db, clock, findDeviceId: findId }),
    ...listContactRoutes(shared),
    ...listBrokerRoutes(shared, limiters),
  ];
}

/** What counts attempts of strangers: for all processes where there is a Redis. */
async function startLimiters({ config, log, releases }: Shared): Promise<MakeLimiter> {
  if (config.redisUrl === null) return memoryLimiters;
  const onError = (err: unknown) => log.warn({ err }, 'attempts are counted by this process alone');
  const redis = await connectRedis({ url: config.redisUrl, onError });
  releases.add(() => closeRedis(redis));
  return redisLimiters(redis);
}

/** Keeps the history as long as it is asked for, and clears what removed devices left. */
async function startHistoryCare(shared: Shared) {
  const { config, log, db, bus, releases } = shared;
  await applyRetention(db, config.retention);
  const onError = (err: unknown) => log.warn({ err }, 'the history could not be looked after');
  const onFailedJobs = (jobs: FailedJob[]) =>
    log.warn({ jobs }, 'jobs of TimescaleDB on the history failed; it will try them again');
  const { retention } = config;
  const chores = [
    (signal: AbortSignal) => removeUnusedProfiles(db, signal),
    () => compactActivity(db, retention),
    forgetOldEntries(shared),
  ];
  releases.add(startUpkeep({ db, retention, onError, onFailedJobs, chores }));
  const onPurgeError = (err: unknown) =>
    log.warn({ err }, 'the history of a removed device is cleared at the next start');
  const removal = createDeviceRemoval({ db, bus, purge: purgeDevices, onPurgeError });
  void removal.resume().catch(onPurgeError);
  return removal;
}
