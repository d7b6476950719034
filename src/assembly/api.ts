import { randomUUID } from 'node:crypto';
import { asyncApiDocument } from '../../connector/device/asyncapi.ts';
import type { Connector } from '../../connector/mqtt/server.ts';
import { isAhead } from '../alarms/schema.ts';
import { memoryLimiters, type MakeLimiter } from '../accounts/limiters.ts';
import { createLoginRates } from '../accounts/login-rates.ts';
import { createPasswords } from '../accounts/passwords.ts';
import { createRegistrationLimit } from '../accounts/registration-limit.ts';
import { redisLimiters } from '../accounts/redis-limiters.ts';
import { accountsRoutes } from '../accounts/routes.ts';
import { createThrottle } from '../accounts/throttle.ts';
import { auditRoutes } from '../audit/routes.ts';
import { readHistoryKind } from '../history/kind.ts';
import { noSuchDevice } from '../devices/no-such-device.ts';
import { keyRoutes } from '../api-keys/routes.ts';
import { checkReach } from '../devices/check-reach.ts';
import { findDeviceId } from '../devices/queries.ts';
import { deviceRoutes } from '../devices/routes.ts';
import { eventRoutes } from '../events/routes.ts';
import { trustProxies } from '../http/address.ts';
import { docsRoutes } from '../http/docs.ts';
import type { Route } from '../http/route.ts';
import { startHttp } from '../http/server.ts';
import type { HttpServer, Upgrade } from '../http/server.ts';
import { probeRoutes } from '../http/probes.ts';
import { statusRoutes } from '../http/status.ts';
import { createBox } from '../idempotency/box.ts';
import { createRunOnce } from '../idempotency/run-once.ts';
import { jobRoutes } from '../jobs/routes.ts';
import { findNewest } from '../measurements/newest.ts';
import { measurementRoutes } from '../measurements/routes.ts';
import { webhookDocs } from '../notifications/hook-docs.ts';
import { notificationRoutes } from '../notifications/routes.ts';
import { profileRoutes } from '../profiles/routes.ts';
import { purposeRoutes } from '../purposes/routes.ts';
import { createExports } from '../quotas/exports.ts';
import { createRequestRate } from '../quotas/request-rate.ts';
import { quotaRoutes } from '../quotas/routes.ts';
import { closeRedis, connectRedis } from '../lib/redis.ts';
import { createStreamCount } from '../streams/count-streams.ts';
import { createTickets, type Tickets } from '../streams/tickets.ts';
import { version } from '../version.ts';
import { startAccountMail } from './account-mail.ts';
import { createFindAround } from './around.ts';
import { createAlarmsOfRoutes } from './alarms.ts';
import { listBrokerRoutes } from './broker-hooks.ts';
import { listSeenBridges } from './bridges-seen.ts';
import type { DeviceSide } from './device-side.ts';
import { listConnectors } from './connector-addresses.ts';
import { listContactRoutes } from './contacts.ts';
import type { Console } from './console.ts';
import { startDoors, type Doors } from './doors.ts';
import { answerOf, databaseAnswers } from './health.ts';
import { listImportRoutes } from './imports.ts';
import { startJobs } from './jobs.ts';
import { tellOfRedis, type Shared } from './shared.ts';
import { startHistoryCare } from './history-care.ts';
import { createStreams } from './streams.ts';
import { createInstallWarnings } from './install-warnings.ts';

/** The devices that this process serves too. */
export type OwnDevices = Pick<DeviceSide, 'connector' | 'othersWait'>;

/** The half that apps, dashboards and people talk to. `devices`: the other half, where it runs in this process. */
export async function startApi(
  shared: Shared,
  devices: OwnDevices | null,
  webConsole: Console | null = null,
): Promise<HttpServer> {
  const connector = devices?.connector ?? null;
  const { config, log, db, metrics, clock, monotonicClock } = shared;
  const doors = await startDoors(shared);
  const { bus } = shared;
  const tickets = createTickets({ db, bus, clock, findHolder: doors.findHolder });
  const parts = { doors, tickets, devices, webConsole };
  const routes = await listRoutes(shared, parts, () => http.port);
  const status = statusRoutes({
    findTroubles: async () => {
      const [database, sessionsUp] = await Promise.all([
        databaseAnswers(db),
        doors.areSessionsReachable(),
      ]);
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
    authenticate: doors.authenticate,
    authenticateTicket: tickets.authenticate,
    readCookie: webConsole?.cookie(shared.keys).read,
    checkReach: (accountId, uuid, labels) => checkReach(db, accountId, uuid, labels),
    runOnce: createRunOnce({
      db,
      box: createBox(shared.keys.keptAnswers),
      limitOf: (accountId) => shared.limitsOf(accountId).idempotencyKeys,
      nowMs: monotonicClock,
    }),
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

type Parts = {
  doors: Doors;
  tickets: Tickets;
  devices: OwnDevices | null;
  webConsole: Console | null;
};

async function listRoutes(
  shared: Shared,
  { doors, tickets, devices, webConsole }: Parts,
  httpPort: () => number,
): Promise<Route[]> {
  const { config, db, bus, keys, clock, monotonicClock, limitsOf } = shared;
  const { sessions, authenticate } = doors;
  const { connector = null, othersWait = () => false } = devices ?? {};
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
  const alarms = createAlarmsOfRoutes(shared);
  const onLabelled = async (accountId: number) => {
    await alarms.wake(db, accountId, clock());
    bus.publish('labels', { accountId });
  };
  const jobs = startJobs(shared, { removal, acting: alarms.acting, onLabelled });
  const warnings = createInstallWarnings(shared);
  const findId = (accountId: number, uuid: string) => findDeviceId(db, accountId, uuid);
  const getDeviceId = async (accountId: number, uuid: string) => {
    const deviceId = await findId(accountId, uuid);
    if (deviceId === null) throw noSuchDevice();
    return deviceId;
  };
  const { walkAlarms } = alarms;
  const parts = { doors: { authenticate }, tickets, streams, exports, walkAlarms };
  const { eventHub, reaches, routes: streamRoutes } = createStreams(shared, parts);
  const accounts = {
    db,
    sessions,
    passwords: createPasswords(),
    throttle: createThrottle(failedLogins, limiters),
    countLogin: createLoginRates({ ...config.quotas, loginsOf: shared.loginsOf }, limiters),
    ...startAccountMail(shared),
    openRegistration,
    countRegistration: createRegistrationLimit(registrationsPerAddress, limiters),
    onDevicesRemoved: removal.finishRemoval,
    onPushTokens: alarms.wake,
  };
  return [
    ...accountsRoutes(accounts),
    ...(webConsole?.listRoutes({ shared, doors, accounts }) ?? []),
    ...auditRoutes({ db }),
    ...keyRoutes({ db, limitsOf, onRevoked: (revoked) => bus.publish('revoked', revoked) }),
    ...deviceRoutes({
      db,
      bus,
      keys: keys.deviceTokens,
      listConnectors: () => listConnectors(config, connector, httpPort()),
      removeDevice: removal.removeDevice,
      findNewest,
      findAround: createFindAround(shared),
      onConfigured: alarms.onConfigured,
      quotas,
      limitsOf,
      exports,
      newUuid: randomUUID,
      startJob: jobs.startJob,
      isAhead,
    }),
    ...jobRoutes({ db }),
    ...purposeRoutes({ db, quotas, limitsOf, warnOfNumbers: warnings.warnOfNumbers }),
    ...quotaRoutes({ db, quotas, retention: config.retention, counters }),
    ...profileRoutes({ db, bus, quotas, limitsOf, warnOfSms: warnings.warnOfSms }),
    ...eventRoutes({
      db,
      bus,
      hub: eventHub,
      reaches,
      getDeviceId,
      authenticate,
      streams,
      exports,
      walkAlarms,
      onAccountDisabled: shared.disabled.onDisabled,
    }),
    ...streamRoutes,
    ...alarms.listRoutes(getDeviceId),
    ...measurementRoutes({ db, kind: await readHistoryKind(db), getDeviceId, exports }),
    ...listImportRoutes(shared, { authenticate, othersWait }),
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
