import { asyncApiDocument } from '../../connector/device/asyncapi.ts';
import { checkReach } from '../devices/check-reach.ts';
import { docsRoutes } from '../http/docs.ts';
import { probeRoutes } from '../http/probes.ts';
import { startHttp, type HttpOptions, type HttpServer } from '../http/server.ts';
import { statusRoutes } from '../http/status.ts';
import { createBox } from '../idempotency/box.ts';
import { createRunOnce } from '../idempotency/run-once.ts';
import { observeHttpTurns } from '../metrics/observe-http-turns.ts';
import { webhookDocs } from '../notifications/hook-docs.ts';
import { createRequestRate } from '../quotas/request-rate.ts';
import { createTickets } from '../streams/tickets.ts';
import { version } from '../version.ts';
import { inFrontOf, upgradesOf } from './uplink.ts';
import { startQuotaWatchOf } from './quota-watch.ts';
import { startSecretChangeOf } from './secret-change.ts';
import { listSeenBridges } from './bridges-seen.ts';
import type { Console } from './console.ts';
import { startDoors } from './doors.ts';
import { answerOf, databaseAnswers } from './lifecycle.ts';
import { type Shared } from './shared.ts';
import { listRoutes, type OwnDevices } from './routes.ts';

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
    routes: [
      ...all,
      ...docsRoutes(all, { version, getAsyncApi: asyncApiDocument, webhooks: webhookDocs }),
    ],
    authenticate: doors.authenticate,
    authenticateTicket: tickets.authenticate,
    readCookie: webConsole?.cookie(shared.keys).read,
    checkReach: (accountId, uuid, labels) => checkReach(db, accountId, uuid, labels),
    confirmReads: db.confirmReads,
    runOnce: createRunOnce({
      db,
      box: createBox(shared.keys.keptAnswers),
      limitOf: (accountId) => shared.limitsOf(accountId).idempotencyKeys,
      nowMs: monotonicClock,
    }),
    takeRequest: takeRequestOf(shared),
    beginWork: shared.beginWork,
    log: log.child({ component: 'http' }),
    clock,
    observe: metrics.observeHttp,
    ...config.http,
    places: shared.places,
    roomBytes: shared.memory.requestBytes,
    isShort: shared.memory.isShort,
    ...(devices?.uplink ? inFrontOf(devices.uplink) : {}),
    isLeaving: shared.readiness.isStopping,
    ...(connector ? upgradesOf(connector, config.http.trustedProxies) : {}),
  });
  observeHttpTurns(metrics.registry, http.countWaiting);
  startQuotaWatchOf(shared);
  startSecretChangeOf(shared);
  shared.publicUrl.listensOn(http.port);
  shared.edges.add('HTTP', (withinMs) => http.close(withinMs));
  return http;
}

/** Counts a request; while one account asks, devices of others do not catch up. */
function takeRequestOf({
  limitsOf,
  monotonicClock,
  requests,
}: Shared): NonNullable<HttpOptions['takeRequest']> {
  const take = createRequestRate(limitsOf, monotonicClock);
  return (accountId) => {
    requests.note(accountId, monotonicClock());
    return take(accountId);
  };
}
