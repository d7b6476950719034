import type { Bus } from '../bus/bus.ts';
import { Configuration } from '../contract/configuration.ts';
import { checkConfigurationSizes } from '../contract/sizes.ts';
import { warnOfUnknownTo } from '../contract/unknown-members.ts';
import { sayWarnings, SomeWarnings } from '../contract/warning.ts';
import type { Sql } from '../db/sql.ts';
import { defineRoute, jsonText } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { DeviceParams, TimestampResponse } from '../http/schema.ts';
import type { LimitsOf } from '../quotas/overrides.ts';
import { refuseOversized } from '../quotas/refuse.ts';
import { updateConfiguration } from './configuration-queries.ts';
import { createDescribeDevice } from './describe-device.ts';
import { noSuchDevice } from './no-such-device.ts';
import { DescribedDevice } from './schema.ts';

/** A device's configuration, its state and its profiles. */
export function describeRoute({ db }: { db: Sql }): Route {
  const describeDevice = createDescribeDevice(db);
  return defineRoute({
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/configuration',
    summary: 'Get Configuration',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    response: DescribedDevice,
    errors: [404],
    room: 4_194_304,
    handler: async ({ account, params, request }) => {
      const uuid = params.deviceAuthUuid;
      const device = await describeDevice(account.accountId, uuid, request.receivedTs);
      if (device === null) throw noSuchDevice();
      return jsonText(device);
    },
  });
}

/** Replaces a device's description of itself, and hands it to the device. */
export function configureRoute({
  db,
  bus,
  limitsOf,
}: {
  db: Sql;
  bus: Bus;
  limitsOf: LimitsOf;
}): Route {
  return defineRoute({
    method: 'put',
    path: '/v2/devices/{deviceAuthUuid}/configuration',
    summary: 'Update Configuration',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    body: Configuration,
    response: TimestampResponse.extend({ warnings: SomeWarnings }),
    errors: [404],
    warnOf: warnOfUnknownTo(Configuration, DescribedDevice),
    handler: async ({ account, params, body, request, warnings }) => {
      refuseOversized(checkConfigurationSizes(body, limitsOf(account.accountId)));
      const uuid = params.deviceAuthUuid;
      const deviceId = await updateConfiguration(db, account.accountId, uuid, body);
      if (deviceId === null) throw noSuchDevice();
      bus.publish('device', { deviceId, uuid, push: 'configuration' });
      return { timestamp: request.now(), ...sayWarnings(warnings) };
    },
  });
}
