import { randomUUID } from 'node:crypto';
import { isAhead } from '../alarms/schema.ts';
import { createLoginRates } from '../accounts/login-rates.ts';
import { createPasswords } from '../accounts/passwords.ts';
import { createLinkMailLimit, createRegistrationLimit } from '../accounts/registration-limit.ts';
import { accountsRoutes } from '../accounts/routes.ts';
import { createThrottle } from '../accounts/login-limits.ts';
import { auditRoutes } from '../audit/routes.ts';
import { readHistoryKind } from '../history/kind.ts';
import { forgetPersons } from '../history/owned-rows.ts';
import { noSuchDevice } from '../devices/no-such-device.ts';
import { keyRoutes } from '../api-keys/routes.ts';
import { findDeviceId } from '../devices/queries.ts';
import { deviceRoutes } from '../devices/routes.ts';
import { eventRoutes } from '../events/routes.ts';
import type { Route } from '../http/route.ts';
import { jobRoutes } from '../jobs/routes.ts';
import { findNewest } from '../measurements/newest.ts';
import { measurementRoutes } from '../measurements/routes.ts';
import { notificationRoutes } from '../notifications/routes.ts';
import { profileRoutes } from '../profiles/routes.ts';
import { purposeRoutes } from '../purposes/purposes.ts';
import { createExports } from '../quotas/exports.ts';
import { quotaRoutes } from '../quotas/routes.ts';
import { createStreamCount } from '../streams/count-streams.ts';
import { type Tickets } from '../streams/tickets.ts';
import { startAccountMail } from './account-mail.ts';
import { createFindAround } from './around.ts';
import { createAlarmsOfRoutes } from './people.ts';
import { listBrokerRoutes } from './broker-hooks.ts';
import type { DeviceSide } from './devices.ts';
import { listConnectors } from './connector-addresses.ts';
import { createOnLabelled, listContactRoutes } from './contacts.ts';
import type { Console } from './console.ts';
import { type Doors } from './doors.ts';
import { listImportRoutes } from './imports.ts';
import { startJobs } from './jobs.ts';
import { type Shared } from './shared.ts';
import { startHistoryCare } from './background.ts';
import { createStreams } from './streams.ts';
import { createInstallWarnings } from './install-warnings.ts';
import { startLimiters } from './limiters.ts';

/** The devices that this process serves too. */
export type OwnDevices = Pick<DeviceSide, 'connector' | 'uplink' | 'othersWait'>;

export type RouteParts = {
  doors: Doors;
  tickets: Tickets;
  devices: OwnDevices | null;
  webConsole: Console | null;
};

/** All that is answered over HTTP, but for what the service says of itself. */
export async function listRoutes(
  shared: Shared,
  { doors, tickets, devices, webConsole }: RouteParts,
  httpPort: () => number,
): Promise<Route[]> {
  const { config, db, bus, keys, monotonicClock, limitsOf } = shared;
  const { sessions, authenticate } = doors;
  const { connector = null, othersWait = () => false } = devices ?? {};
  const { removal, startClearing } = await startHistoryCare(shared, doors.isLive);
  const { failedLogins, openRegistration, registrationsPerAddress } = config.accounts;
  const { quotas } = config;
  const streams = createStreamCount((accountId) => limitsOf(accountId).streams);
  const exports = createExports({
    limitOf: (accountId) => limitsOf(accountId).exports,
    isGone: shared.disabled.has,
    nowMs: monotonicClock,
  });
  const counters = {
    streams: async (accountId: number) => streams.used(accountId),
    sessions: async (accountId: number) => (await sessions.list(accountId)).length,
  };
  const limiters = await startLimiters(shared);
  const alarms = createAlarmsOfRoutes(shared);
  const onLabelled = createOnLabelled(shared);
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
    ...(webConsole?.listRoutes({ shared, doors, accounts }) ?? []),
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
      findAround: createFindAround(shared),
      onConfigured: alarms.onConfigured,
      quotas,
      limitsOf,
      exports,
      newUuid: randomUUID,
      startJob: jobs.startJob,
      listJobDevices: jobs.listJobDevices,
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
