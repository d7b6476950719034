import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { asyncApiDocument } from '../../connector/device/asyncapi.ts';
import type { Connector } from '../../connector/mqtt/server.ts';
import { type AccountsOptions, endSession, logIn } from '../accounts/account.ts';
import {
  createLinkMailLimit,
  createLoginRates,
  createRegistrationLimit,
  createThrottle,
  type MakeLimiter,
  memoryLimiters,
  redisLimiters,
} from '../accounts/login-limits.ts';
import { createPasswords } from '../accounts/passwords.ts';
import { getAccount, hasAccounts } from '../accounts/queries.ts';
import { accountsRoutes } from '../accounts/routes.ts';
import { isAhead } from '../alarms/actions.ts';
import { findMute, listStandings } from '../alarms/routes.ts';
import { reopenMs } from '../alarms/rules.ts';
import { keyRoutes } from '../api-keys/routes.ts';
import { auditRoutes, doneBy } from '../audit/audit.ts';
import {
  brokerRoutes,
  createBridgeCheck,
  createSecretCheck,
} from '../broker-hooks/broker-hooks.ts';
import type { Config } from '../config/config.ts';
import { pageRoutes, startConsoleBuild } from '../console/pages.ts';
import {
  consoleSessionRoutes,
  createSessionCookie,
  type SessionCookie,
} from '../console/session.ts';
import { createDeviceAuthenticator } from '../devices/authenticate.ts';
import { checkReach, type FindEvaluationContext } from '../devices/device.ts';
import { findDeviceId } from '../devices/queries.ts';
import { deviceRoutes } from '../devices/routes.ts';
import { type ConnectorAddress, noSuchDevice } from '../devices/schema.ts';
import { createDeviceIdentifier } from '../devices/tokens.ts';
import { eventRoutes } from '../events/routes.ts';
import { forgetPersons } from '../history/clear-removed.ts';
import { readHistoryKind } from '../history/retention.ts';
import { docsRoutes } from '../http/docs.ts';
import { createRefuseSlowly } from '../http/errors.ts';
import { probeRoutes, statusRoutes } from '../http/health.ts';
import type { Route } from '../http/route.ts';
import { type HttpServer, startHttp } from '../http/server.ts';
import { createCipher, createRunOnce } from '../idempotency/run-once.ts';
import { findClockNotes } from '../ingest/save-states.ts';
import { jobRoutes } from '../jobs/routes.ts';
import { network } from '../lib/address.ts';
import { closeRedis, connectRedis } from '../lib/redis.ts';
import type { Listening } from '../engine/last-seen.ts';
import { findConnectorUptime, groupByConnector } from '../connector-uptime/connector-uptime.ts';
import type { ServiceLog } from '../log/logger.ts';
import { findByValues } from '../measurements/queries.ts';
import { measurementRoutes } from '../measurements/routes.ts';
import { findNewest } from '../measurements/store.ts';
import { observeHooks, observeHttpQueue } from '../metrics/observe.ts';
import { notificationRoutes } from '../notifications/routes.ts';
import { webhookDocs } from '../notifications/webhook-docs.ts';
import { readProfile } from '../profiles/install.ts';
import { backtestRoutes } from '../play/routes.ts';
import { commandRoutes } from '../commands/routes.ts';
import { createCommandWaits } from '../commands/wait.ts';
import type { ListListening } from '../play/run.ts';
import { labelLimitRoutes, takeLabelLimits } from '../profiles/label-limits.ts';
import { createInstall, profileRoutes } from '../profiles/routes.ts';
import { createExploring } from '../purposes/cases.ts';
import { purposeRoutes } from '../purposes/purposes.ts';
import { createExports } from '../quotas/exports.ts';
import { createRequestRate } from '../quotas/rates.ts';
import { quotaRoutes } from '../quotas/routes.ts';
import { createStreamCount } from '../streams/subscriber.ts';
import { createTickets, type Tickets } from '../streams/tickets.ts';
import { version } from '../version.ts';
import {
  startAccountMail,
  startCommandExpiry,
  startBacktests,
  startHistoryCare,
  startJobs,
  startQuotaWatchOf,
  startSecretChangeOf,
} from './background.ts';
import { listSeenBridges } from './bridges.ts';
import { startLoginWatchOf } from './device-ports.ts';
import { type DeviceServices, inFrontOf, leadersAmong, upgradesOf } from './devices.ts';
import { answerOf, databaseAnswers, type Disposables } from './lifecycle.ts';
import {
  createAlarmsOfRoutes,
  createInstallWarningsOf,
  createOnLabelled,
  listContactRoutes,
} from './people.ts';
import { type Shared, tellOfRedis } from './shared.ts';
import { createStreams, type Auth, listImportRoutes, startAuth } from './streams.ts';

/**
 * Starts the half of the service that apps, dashboards and people talk to. `devices`: the other half, if it runs in
 * this process.
 */
export async function startApi(
  shared: Shared,
  devices: OwnDevices | null,
  webConsole: Console | null = null,
): Promise<HttpServer> {
  const connector = devices?.connector ?? null;
  const { config, log, db, metrics, clock, monotonicClock } = shared;
  const auth = await startAuth(shared);
  const { bus } = shared;
  const tickets = createTickets({ db, bus, clock, findHolder: auth.findHolder });
  const parts = { auth, tickets, devices, webConsole };
  const routes = await listRoutes(shared, parts, () => http.port);
  const status = statusRoutes({
    findFailures: async () => {
      const [database, sessionsUp] = await Promise.all([
        databaseAnswers(db),
        auth.areSessionsReachable(),
      ]);
      return [
        ...(database ? [] : ['database']),
        ...(sessionsUp ? [] : ['sessions']),
        ...(shared.believed.believedTs() === null ? ['clock'] : []),
      ];
    },
    listReasons: shared.health.list,
    listBridges: async () => (await answerOf(() => listSeenBridges(db, config.connectors))) ?? [],
  });
  const all = [...routes, ...status, ...probeRoutes(shared.readiness)];
  const http: HttpServer = await startHttp({
    ...config.httpListen,
    routes: [...all, ...referenceOf(all)],
    authenticate: auth.authenticate,
    authenticateTicket: tickets.authenticate,
    readCookie: webConsole?.cookie(shared.keys).read,
    checkReach: (accountId, uuid, labels) => checkReach(db, accountId, uuid, labels),
    confirmReads: db.confirmReads,
    runOnce: createRunOnce({
      db,
      cipher: createCipher(shared.keys.keptAnswers),
      limitOf: (accountId) => shared.limitsOf(accountId).idempotencyKeys,
      monotonicClock,
    }),
    takeRequest: createRequestRate(shared.limitsOf, monotonicClock, shared.requests),
    beginWork: shared.beginWork,
    log: log.child({ component: 'http' }),
    clock,
    observe: metrics.observeHttp,
    ...config.http,
    places: shared.places,
    unreadBodies: shared.unreadBodies,
    requestBytes: shared.memory.requestBytes,
    isShort: shared.memory.isShort,
    ...(devices?.uplink ? inFrontOf(devices.uplink) : {}),
    isLeaving: shared.readiness.isStopping,
    ...(connector ? upgradesOf(connector, config.http.trustedProxies) : {}),
  });
  observeHttpQueue(metrics.registry, http.countWaiting);
  startQuotaWatchOf(shared);
  startCommandExpiry(shared);
  startSecretChangeOf(shared);
  shared.publicUrl.listensOn(http.port);
  shared.ingress.add('HTTP', (withinMs) => http.close(withinMs));
  return http;
}

/** By the operations that it documents. To make one takes a tenth of a second: services of a process share it. */
const references = new Map<string, Route[]>();

function referenceOf(routes: Route[]): Route[] {
  const operations = routes.map(({ method, path }) => `${method} ${path}`).join();
  const made =
    references.get(operations) ??
    docsRoutes(routes, { version, getAsyncApi: asyncApiDocument, webhooks: webhookDocs });
  references.set(operations, made);
  return made;
}

/** The devices half of this process. */
type OwnDevices = Pick<DeviceServices, 'connector' | 'uplink' | 'othersWait'>;

type RouteParts = {
  auth: Auth;
  tickets: Tickets;
  devices: OwnDevices | null;
  webConsole: Console | null;
};

/** All routes except the service's own status and reference. */
async function listRoutes(
  shared: Shared,
  { auth, tickets, devices, webConsole }: RouteParts,
  httpPort: () => number,
): Promise<Route[]> {
  const { config, db, bus, keys, monotonicClock, limitsOf } = shared;
  const { sessions, authenticate } = auth;
  const { connector = null, othersWait = () => false } = devices ?? {};
  const { removal, startClearing } = await startHistoryCare(shared, auth.isLive);
  const { failedLogins, openRegistration, registrationsPerAddress } = config.accounts;
  const { quotas } = config;
  const streams = createStreamCount((accountId) => limitsOf(accountId).streams);
  const exports = createExports({
    limitOf: (accountId) => limitsOf(accountId).exports,
    isGone: shared.disabled.has,
    monotonicClock,
  });
  const counters = {
    streams: async (accountId: number) => streams.used(accountId),
    sessions: async (accountId: number) => (await sessions.list(accountId)).length,
  };
  const limiters = await startLimiters(shared);
  const alarms = createAlarmsOfRoutes(shared);
  const onLabelled = createOnLabelled(shared);
  const acting = { removal, acting: alarms.acting, onLabelled };
  const warnings = createInstallWarningsOf(shared);
  const { warnOfSms } = warnings;
  const jobs = startJobs(shared, { ...acting, warnOfSms, newUuid: randomUUID });
  const exploring = createExploring({ warnMs: config.purposes.exploreMs });
  shared.disposables.add('exploring', () => exploring.close());
  const warnOfExplored = exploring.warnOf;
  const install = createInstall({ db, bus, quotas, limitsOf, warnOfSms, warnOfExplored });
  const backtests = startBacktests(shared, createListListening(shared));
  const findId = (accountId: number, uuid: string) => findDeviceId(db, accountId, uuid);
  const getDeviceId = async (accountId: number, uuid: string) => {
    const deviceId = await findId(accountId, uuid);
    if (deviceId === null) throw noSuchDevice();
    return deviceId;
  };
  const { walkAlarms } = alarms;
  const parts = { auth: { authenticate }, tickets, streams, exports, walkAlarms };
  const { eventBroadcaster, reaches, routes: streamRoutes } = createStreams(shared, parts);
  const accounts = {
    db,
    sessions,
    passwords: createPasswords(),
    throttle: createThrottle(failedLogins, limiters),
    countLogin: createLoginRates({ ...config.quotas, loginsOf: shared.loginsOf }, limiters),
    ...startAccountMail(shared),
    openRegistration,
    countRegistration: createRegistrationLimit(registrationsPerAddress, limiters),
    countLinkMail: createLinkMailLimit(limiters),
    forgetPersons,
    onAccountRemoved(accountId: number) {
      bus.publish('removed', { accountId });
      startClearing();
    },
    onPushTokens: alarms.wake,
    pushTokensOf: (accountId: number) => limitsOf(accountId).pushTokens,
  };
  return [
    ...accountsRoutes(accounts),
    ...(webConsole?.listRoutes({ shared, auth, accounts }) ?? []),
    ...auditRoutes({ db }),
    ...keyRoutes({ db, limitsOf, onRevoked: (revoked) => bus.publish('revoked', revoked) }),
    ...deviceRoutes({
      db,
      bus,
      keys: keys.deviceTokens,
      secretId: keys.secretIds[0] ?? '',
      listConnectors: () => listConnectors(config, connector, httpPort()),
      removeDevice: removal.removeDevice,
      findNewest,
      findByValues,
      findEvaluationContext: createFindEvaluationContext(shared),
      onConfigured: alarms.onConfigured,
      quotas,
      limitsOf,
      exports,
      newUuid: randomUUID,
      takeLabelLimits: (tx, accountId, uuids) => takeLabelLimits(tx, { accountId, uuids }),
      startJob: jobs.startJob,
      listJobDevices: jobs.listJobDevices,
      planChange: jobs.planChange,
      planBack: jobs.planBack,
      planByLabel: jobs.planByLabel,
      previewChange: jobs.previewChange,
      isAhead,
    }),
    ...jobRoutes({ db, reopenMs }),
    ...commandRoutes({ db, bus, limitsOf, waits: startCommandWaits(shared), newUuid: randomUUID }),
    ...purposeRoutes({ db, quotas, limitsOf, warnOfNumbers: warnings.warnOfNumbers, exploring }),
    ...quotaRoutes({ db, quotas, retention: config.retention, counters }),
    ...profileRoutes({ db, install }),
    ...labelLimitRoutes({ db, quotas, limitsOf, newUuid: randomUUID, startJob: jobs.startJob }),
    ...eventRoutes({
      db,
      bus,
      broadcaster: eventBroadcaster,
      reaches,
      getDeviceId,
      authenticate,
      streams,
      exports,
      walkAlarms,
      onAccountDisabled: shared.disabled.onDisabled,
    }),
    ...streamRoutes,
    ...alarms.listRoutes({ getDeviceId, ...jobs }),
    ...backtestRoutes({
      db,
      // Slots of their own: they compute in between, and exports would wait for that.
      exports: createExports({
        limitOf: () => 1,
        isGone: shared.disabled.has,
        monotonicClock: shared.monotonicClock,
      }),
      limitsOf,
      ...backtests,
      install,
      readProfile: (accountId, asked) => readProfile(db, accountId, asked, limitsOf(accountId)),
    }),
    ...measurementRoutes({ db, kind: await readHistoryKind(db), getDeviceId, exports }),
    ...listImportRoutes(shared, { authenticate, othersWait }),
    ...notificationRoutes({ db, findDeviceId: findId }),
    ...listContactRoutes(shared),
    ...listBrokerRoutes(shared, limiters),
  ];
}

function startCommandWaits({ bus, monotonicClock, disposables }: Shared) {
  const waits = createCommandWaits({ bus, monotonicClock });
  disposables.add('requests that wait for commands', async () => waits.close());
  return waits;
}

/** Limits login attempts, across all processes if there is a Redis. */
async function startLimiters({ config, log, disposables }: Shared): Promise<MakeLimiter> {
  if (config.redisUrl === null) return memoryLimiters;
  const accountsLog = log.child({ component: 'accounts' });
  const onError = (err: unknown) =>
    accountsLog.warn(
      { event: 'attempts.local', err },
      'Redis does not answer; this process counts login attempts on its own.',
    );
  const onBack = () => tellOfRedis(accountsLog);
  const redis = await connectRedis({ url: config.redisUrl, onError, onBack });
  disposables.add('counters of attempts', () => closeRedis(redis));
  return redisLimiters(redis);
}

/**
 * The addresses given to devices. A missing port is the one on which this process listens. If plain MQTT is turned off,
 * the address is MQTT over TLS, or MQTT over WebSocket if there is no certificate.
 */
function listConnectors(
  config: Config,
  connector: Connector | null,
  httpPort: number,
): ConnectorAddress[] {
  const ports = {
    mqtt: connector?.addresses.tcp?.port ?? config.mqttListen?.port ?? 1883,
    mqtts: connector?.addresses.tls?.port ?? config.mqttsListen?.port ?? 8883,
    ws: httpPort,
    wss: 443,
    http: httpPort,
    https: 443,
  };
  const insteadOfPlain = config.mqttsListen ? 'mqtts' : 'ws';
  return config.connectors.map(({ id, kind, name, protocol: asked, host, port }) => {
    const isOff = asked === 'mqtt' && port === null && config.mqttListen === null;
    const protocol = isOff ? insteadOfPlain : asked;
    return {
      id,
      kind,
      name,
      protocol,
      host: host ?? config.publicHost,
      port: port ?? ports[protocol],
    };
  });
}

/**
 * What an evaluation reports besides a device's evidence: its alarms, late measurements, when its connector listened.
 */
function createFindEvaluationContext({
  config,
  clock,
}: Pick<Shared, 'config' | 'clock'>): FindEvaluationContext {
  const leaders = leadersAmong(config.connectors);
  const leaderOf = (connectorId: number) => leaders.get(connectorId) ?? null;
  return async (db, { deviceId, pId, newest, listenedSinceTs: sinceTs }) => {
    const [alarms, mutedUntilTs, { notes, remarked }, listening] = await Promise.all([
      listStandings(db, { deviceId, pId }),
      findMute(db, deviceId),
      findClockNotes(db, deviceId, newest),
      sinceTs === null
        ? undefined
        : findConnectorUptime(db, deviceId, { sinceTs, nowTs: clock() }, leaderOf),
    ]);
    const late = notes.flatMap(({ sId, late: count, clockTs }) =>
      count > 0 && clockTs !== null ? [[sId, { count, newestTs: clockTs }] as const] : [],
    );
    const ahead = notes.flatMap(({ sId, aheadTs }) =>
      aheadTs === null ? [] : [[sId, { newestTs: aheadTs }] as const],
    );
    return {
      alarms,
      mutedUntilTs,
      late: new Map(late),
      ahead: new Map(ahead),
      clockAheadTs: remarked?.aheadTs ?? undefined,
      clockBackTs: remarked?.backTs ?? undefined,
      listening,
    };
  };
}

/** When the connectors of devices listened, each connector read once. */
function createListListening({
  config,
  db,
  clock,
}: Pick<Shared, 'config' | 'db' | 'clock'>): ListListening {
  const leaders = leadersAmong(config.connectors);
  const leaderOf = (connectorId: number) => leaders.get(connectorId) ?? null;
  return async (deviceIds, sinceTs) => {
    const found = new Map<number, Listening | undefined>();
    for (const ids of await groupByConnector(db, deviceIds)) {
      const [first] = ids;
      if (first === undefined) continue;
      const at = { sinceTs, nowTs: clock() };
      const listening = await findConnectorUptime(db, first, at, leaderOf);
      for (const id of ids) found.set(id, listening);
    }
    return found;
  };
}

/** A secret of this length cannot be guessed. Shorter ones are accepted, because they may be in use. */
const advisedLength = 32;

/** The routes for an external broker. They exist only if its secret is configured. */
function listBrokerRoutes(shared: Shared, makeLimiter: MakeLimiter): Route[] {
  const { db, bus, keys, clock, disposables, metrics } = shared;
  const isDisabled = shared.disabled.has;
  const { brokerHookSecret: secret, bridgeSecret } = shared.config;
  if (secret === null) return [];
  const log = shared.log.child({ component: 'bridge' });
  for (const [variable, value] of [
    ['BROKER_HOOK_SECRET', secret],
    ['BRIDGE_SECRET', bridgeSecret],
  ] as const)
    if (value !== null && value.length < advisedLength)
      log.warn(
        { event: 'secret.short', variable, advisedLength },
        'The secret is short enough to guess: generate one with "openssl rand -base64 48".',
      );
  const authenticator = createDeviceAuthenticator({
    db,
    keys: keys.deviceTokens,
    secretIds: keys.secretIds,
    bus,
    clock,
    isDisabled,
    watch: startLoginWatchOf(shared),
  });
  const identifier = createDeviceIdentifier({ db, bus, isDisabled });
  disposables.add('logins of hooks', () => authenticator.close());
  disposables.add('devices of hooks', () => identifier.close());
  const { authenticateDevice } = authenticator;
  const { identify } = identifier;
  const onRefused = observeHooks(metrics.registry);
  const networkOf = network;
  const guessing = { makeLimiter, networkOf };
  const checkSecret = createSecretCheck({ ...guessing, secret, onRefused });
  const checkBridge = createBridgeCheck({
    ...guessing,
    secret: bridgeSecret ?? secret,
    onRefused(reason, address) {
      onRefused(reason);
      if (reason === 'bridge-wrong-password')
        log.warn(
          { event: 'broker.bridge-refused', ...(address === undefined ? {} : { address }) },
          'A client of the external broker claimed to be a bridge with a wrong password.',
        );
    },
  });
  return brokerRoutes({ checkSecret, checkBridge, authenticateDevice, identify });
}

export type Console = {
  /** The cookie by which the page's session may use any route. */
  cookie(keys: Shared['keys']): SessionCookie;
  listRoutes(of: { shared: Shared; auth: Auth; accounts: AccountsOptions }): Route[];
};

/** Starts building the console while the database starts; null if it is turned off. */
export function startConsole(
  config: Config,
  log: ServiceLog,
  disposables: Disposables,
): Console | null {
  if (!config.console.enabled || config.role.name === 'connector') return null;
  const { databaseUrl, dataDir } = config;
  const build = startConsoleBuild({
    // With an external database nothing else is stored on this machine.
    cacheDir: databaseUrl === null ? join(dataDir, 'console') : null,
    log: log.child({ component: 'console' }),
  });
  disposables.add('console', () => build.close());
  const cookie = ({ accountTokens }: Shared['keys']) =>
    createSessionCookie({ keys: accountTokens, publicUrl: config.publicUrl });
  return {
    cookie,
    listRoutes({ shared, auth, accounts }) {
      build.tell();
      return [
        ...pageRoutes(build.find, config.console.tiles?.url ?? null),
        ...listSessionRoutes(cookie(shared.keys), shared, auth, accounts),
      ];
    },
  };
}

function listSessionRoutes(
  cookie: SessionCookie,
  { db, config }: Shared,
  { sessions, authenticate }: Auth,
  accounts: AccountsOptions,
): Route[] {
  const refuseSlowly = createRefuseSlowly(accounts.refusalPauseMs);
  const deps = { ...accounts, revokeSession: sessions.revoke };
  return consoleSessionRoutes({
    cookie,
    authenticate,
    openRegistration: accounts.openRegistration,
    hasMail: accounts.hasMail,
    tiles: config.console.tiles,
    hasAccounts: () => hasAccounts(db),
    signIn: (credentials, request) => {
      const { address, receivedTs } = request;
      const hasGone = () => request.signal.aborted;
      const userAgent = request.header('user-agent');
      const login = { ...credentials, address, userAgent, receivedTs, hasGone };
      return refuseSlowly(() => logIn(deps, login, sessions.startAccountSession), request);
    },
    signOut: async (account, request) => {
      await endSession(deps, account.accountId, account.sessionId, doneBy(account, request));
    },
    describeAccount: async (accountId) => {
      const { accountUuid, email, name, timeZone, language } = await getAccount(db, accountId);
      return {
        accountAuthUuid: accountUuid,
        email,
        name,
        timeZone: timeZone ?? 'UTC',
        language: language ?? 'en',
      };
    },
  });
}
