import { doneBy } from '../audit/entry.ts';
import type { Bus } from '../bus/bus.ts';
import { Configuration } from '../contract/configuration.ts';
import { checkConfigurationSizes } from '../contract/sizes.ts';
import { warnOfUnknownTo } from '../contract/unknown-members.ts';
import { sayWarnings } from '../contract/warning.ts';
import type { Database } from '../db/database.ts';
import { defineRoute } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { DeviceParams, MessageResponse } from '../http/schema.ts';
import type { Exports } from '../quotas/exports.ts';
import type { LimitsOf } from '../quotas/overrides.ts';
import { refuseOversized } from '../quotas/refuse.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { configureRoute, describeRoute } from './configuration-routes.ts';
import type { OnConfigured } from './configuration-routes.ts';
import { evaluationRoute } from './evaluation-routes.ts';
import type { FindAround, FindNewestOf } from './evaluation-routes.ts';
import { listRoute } from './list-route.ts';
import { noSuchDevice } from './no-such-device.ts';
import { pickConnector } from './pick-connector.ts';
import type { ConnectorAddress } from './pick-connector.ts';
import { nameOf } from './queries.ts';
import { createRegistration } from './register.ts';
import type { DeviceRemoval } from './remove-devices.ts';
import { rejectionsRoute } from './rejection-routes.ts';
import { DescribedDevice, exampleConfiguration, Registration } from './schema.ts';
import { tokenRoute } from './token-routes.ts';
import { deriveToken } from './token.ts';

export type DeviceRouteDeps = {
  db: Database;
  bus: Bus;
  /** What device tokens are derived from, newest first. */
  keys: readonly Buffer[];
  /** Where devices connect; asked at each registration. */
  listConnectors: () => readonly ConnectorAddress[];
  /** False when the account has no such device. */
  removeDevice: DeviceRemoval['removeDevice'];
  findNewest: FindNewestOf;
  onConfigured: OnConfigured;
  /** Absent: an explanation says nothing of alarms and of late measurements. */
  findAround?: FindAround;
  quotas: QuotaSettings;
  limitsOf: LimitsOf;
  /** The quota `exports`: lists that are read and sent at once. */
  exports: Pick<Exports, 'run'>;
  /** Makes the identifier of a new device. */
  newUuid: () => string;
};

const tag = 'Devices';

/** Specification section 4.3. */
export function deviceRoutes(deps: DeviceRouteDeps): Route[] {
  return [
    register(deps),
    listRoute(deps),
    describeRoute(deps),
    configureRoute(deps),
    remove(deps),
    tokenRoute(deps),
    rejectionsRoute(deps),
    evaluationRoute(deps),
  ];
}

function register(deps: DeviceRouteDeps): Route {
  const { db, keys, listConnectors, quotas, limitsOf, newUuid } = deps;
  const registerDevice = createRegistration(db, quotas);
  return defineRoute({
    name: 'registerDevice',
    scope: 'devices:write',
    isOfWholeAccount: true,
    method: 'post',
    path: '/v2/devices',
    summary: 'Register Device',
    tag,
    auth: 'account',
    body: Configuration,
    example: exampleConfiguration,
    response: Registration,
    errors: [403],
    warnOf: warnOfUnknownTo(Configuration, DescribedDevice),
    handler: async ({ account, body, request, warnings }) => {
      refuseOversized(checkConfigurationSizes(body, limitsOf(account.accountId)));
      const uuid = newUuid();
      const { id, name, protocol, host, port } = pickConnector(listConnectors(), uuid);
      const configuration = JSON.stringify(body);
      const by = doneBy(account, request);
      const device = { uuid, connectorId: id, configuration, name: nameOf(body), ...by };
      await registerDevice(account.accountId, device);
      return {
        connectorId: id,
        connectorName: name,
        protocol,
        host,
        port,
        deviceAuthUuid: uuid,
        deviceAuthToken: deriveToken(keys, uuid, 1),
        timestamp: request.now(),
        ...sayWarnings(warnings),
      };
    },
  });
}

function remove({ removeDevice }: DeviceRouteDeps): Route {
  return defineRoute({
    name: 'removeDevice',
    scope: 'devices:write',
    method: 'delete',
    path: '/v2/devices/{deviceAuthUuid}',
    summary: 'Remove device',
    tag,
    auth: 'account',
    params: DeviceParams,
    response: MessageResponse,
    errors: [404],
    handler: async ({ account, params, request }) => {
      const { accountId } = account;
      const by = doneBy(account, request);
      const isRemoved = await removeDevice(accountId, params.deviceAuthUuid, by);
      if (!isRemoved) throw noSuchDevice();
      return { timestamp: request.now(), message: 'The device and its data were removed.' };
    },
  });
}
