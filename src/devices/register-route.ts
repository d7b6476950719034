import { doneBy } from '../audit/entry.ts';
import type { Bus } from '../bus/bus.ts';
import { checkConfigurationSizes } from '../contract/sizes.ts';
import { warnOfUnknownTo } from '../contract/unknown-members.ts';
import { sayWarnings } from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { createInTurn } from '../quotas/in-turn.ts';
import type { LimitsOf } from '../quotas/overrides.ts';
import { refuseOversized } from '../quotas/refuse.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { storeWithin } from '../quotas/store-within.ts';
import { pickAsked, type ConnectorAddress } from './pick-connector.ts';
import { insertDevices, nameOf } from './queries.ts';
import { createRegistration } from './register.ts';
import { DescribedDevice } from './schema.ts';
import { exampleRegistration, NewRegistration, Registration } from './registration-schema.ts';
import { deriveToken } from './token.ts';

export type RegisterDeviceDeps = {
  db: Database;
  bus: Pick<Bus, 'publish'>;
  /** What device tokens are derived from, newest first. */
  keys: readonly Buffer[];
  /** The secret of the newest key. */
  secretId: string;
  /** Where devices connect; asked at each registration. */
  listConnectors: () => readonly ConnectorAddress[];
  quotas: QuotaSettings;
  limitsOf: LimitsOf;
  /** Makes the identifier of a new device. */
  newUuid: () => string;
};

/** A registration as it is written down: all else of its answer follows from it. */
export type Registered = { uuid: string; connectorId: number };

/** Registers a device, within the account's quotas. */
export function registerRoute(deps: RegisterDeviceDeps): Route {
  const { db, bus, secretId, listConnectors, quotas, limitsOf, newUuid } = deps;
  const registerDevice = createRegistration(db, quotas);
  const inTurn = createInTurn(2);
  return defineRoute({
    name: 'registerDevice',
    scope: 'devices:write',
    isOfWholeAccount: true,
    method: 'post',
    path: '/v2/devices',
    summary: 'Register Device',
    tag: 'Devices',
    auth: 'account',
    takesKey: true,
    body: NewRegistration,
    example: exampleRegistration,
    response: Registration,
    errors: [403],
    warnOf: warnOfUnknownTo(NewRegistration, DescribedDevice),
    handler: async ({
      account,
      body: { protocol: asked, labels, ...body },
      request,
      warnings,
      once,
    }) => {
      const { accountId } = account;
      refuseOversized(checkConfigurationSizes(body, limitsOf(accountId)));
      const { timestamp, ...made } = await once<Registered & { timestamp: number }>(
        async (keep) => {
          const uuid = newUuid();
          const connectorId = pickAsked(listConnectors(), uuid, asked).id;
          const configuration = JSON.stringify(body);
          const by = doneBy(account, request);
          const name = nameOf(body);
          const device = { uuid, connectorId, configuration, name, labels, secretId, ...by };
          const made = { uuid, connectorId, timestamp: request.now() };
          if (!keep) {
            await registerDevice(accountId, device);
            return { ...made, timestamp: request.now() };
          }
          const store = () =>
            db.transaction(async (tx) => {
              if (!(await insertDevices(tx, accountId, [device], quotas))) return null;
              await keep(tx, made);
              return made;
            });
          const adding = { devices: 1, devicesPerDay: 1 };
          return inTurn(accountId, () => storeWithin(db, { accountId, quotas, adding }, store));
        },
      );
      tellOfNew(bus, accountId, labels.length > 0);
      return { ...describeRegistered(deps, made), timestamp, ...sayWarnings(warnings) };
    },
  });
}

/** Devices were registered: whoever shows the list asks again, and a stream of a label has more devices. */
export function tellOfNew(
  bus: RegisterDeviceDeps['bus'],
  accountId: number,
  areLabelled: boolean,
): void {
  bus.publish(areLabelled ? 'labels' : 'fleet', { accountId });
}

/** What a new device has to know, but for when it was registered. */
export function describeRegistered(
  { keys, listConnectors }: Pick<RegisterDeviceDeps, 'keys' | 'listConnectors'>,
  { uuid, connectorId }: Registered,
) {
  return {
    ...describeConnector(listConnectors(), { uuid, connectorId }),
    deviceAuthUuid: uuid,
    deviceAuthToken: deriveToken(keys, uuid, 1),
  };
}

/** Where a device connects. */
export function describeConnector(
  connectors: readonly ConnectorAddress[],
  { uuid, connectorId }: Registered,
) {
  // One that is no longer configured is told as for a new device.
  const connector =
    connectors.find(({ id }) => id === connectorId) ?? pickAsked(connectors, uuid, undefined);
  const { id, name, protocol, host, port } = connector;
  return { connectorId: id, connectorName: name, protocol, host, port };
}
