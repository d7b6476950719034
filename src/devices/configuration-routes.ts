import type { Bus } from '../bus/bus.ts';
import { Configuration } from '../contract/configuration.ts';
import { checkConfigurationSizes } from '../contract/sizes.ts';
import { sensesOf } from '../contract/senses.ts';
import { warnOfUnknownTo } from '../contract/unknown-members.ts';
import type { DeviceIdentity } from '../contract/uplink.ts';
import { sayWarnings, SomeWarnings } from '../contract/warnings.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { jsonText } from '../http/answer.ts';
import { defineRoute } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { DeviceParams, TimestampResponse } from '../http/schema.ts';
import type { LimitsOf } from '../quotas/overrides.ts';
import { refuseOversized } from '../quotas/refuse.ts';
import { updateConfiguration } from './configuration-queries.ts';
import { createDescribeDevice } from './describe-device.ts';
import { noSuchDevice } from './no-such-device.ts';
import { DescribedDevice } from './schema.ts';
import { exampleConfiguration } from './registration-schema.ts';

/** A device's configuration, its state and its profiles. */
export function describeRoute({ db }: { db: Sql }): Route {
  const describeDevice = createDescribeDevice(db);
  return defineRoute({
    name: 'getDeviceConfiguration',
    scope: 'devices:read',
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

/** Told in the transaction which senses a device has from now on; `ts` in ms. */
export type OnConfigured = (
  tx: Sql,
  device: DeviceIdentity,
  sIds: string[],
  ts: number,
) => Promise<void>;

/** Replaces a device's description of itself, and hands it to the device. */
export function configureRoute({
  db,
  bus,
  limitsOf,
  onConfigured,
}: {
  db: Database;
  bus: Bus;
  limitsOf: LimitsOf;
  onConfigured: OnConfigured;
}): Route {
  return defineRoute({
    name: 'updateDeviceConfiguration',
    scope: 'devices:write',
    method: 'put',
    path: '/v2/devices/{deviceAuthUuid}/configuration',
    summary: 'Update Configuration',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    body: Configuration,
    example: exampleConfiguration,
    response: TimestampResponse.extend({ warnings: SomeWarnings }),
    errors: [404],
    warnOf: warnOfUnknownTo(Configuration, DescribedDevice),
    handler: async ({ account, params, body, request, warnings }) => {
      refuseOversized(checkConfigurationSizes(body, limitsOf(account.accountId)));
      const uuid = params.deviceAuthUuid;
      const { accountId } = account;
      const deviceId = await db.transaction(async (tx) => {
        const found = await updateConfiguration(tx, accountId, uuid, body);
        if (found === null) throw noSuchDevice();
        const sIds = [...sensesOf(body).keys()];
        await onConfigured(tx, { deviceId: found, uuid, accountId }, sIds, request.receivedTs);
        return found;
      });
      bus.publish('device', { deviceId, uuid, push: 'configuration' });
      bus.publish('fleet', { accountId });
      bus.publish('events', { accountIds: [accountId], deviceIds: [deviceId] });
      return { timestamp: request.now(), ...sayWarnings(warnings) };
    },
  });
}
