import type { Sql } from '../db/sql.ts';
import { labelsOf } from '../http/rights.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { DeviceParams } from '../http/schema.ts';
import { findDeviceFacts } from './find-device.ts';
import { findDevices } from './find-devices.ts';
import { connectorsById, toFound } from './list.ts';
import { noSuchDevice } from './no-such-device.ts';
import { describeConnector, type RegisterDeviceDeps } from './register-route.ts';
import { OneDevice } from './schema.ts';

export type OneDeviceDeps = Pick<RegisterDeviceDeps, 'keys' | 'listConnectors'> & { db: Sql };

/** One device: what the list has of it, where it connects, and how its profiles stand. */
export function deviceRoute({ db, keys, listConnectors }: OneDeviceDeps): Route {
  return defineRoute({
    name: 'getDevice',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}',
    summary: 'Get a device',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    response: OneDevice,
    secrets: 'sessions',
    errors: [404],
    handler: async ({ account, params, request }) => {
      const { accountId } = account;
      const uuid = params.deviceAuthUuid;
      const labels = labelsOf(account);
      const filter = { accountId, labels, nowTs: request.now(), uuid, intermittent: [] };
      const [[row], facts] = await Promise.all([
        findDevices(db, filter, 1),
        findDeviceFacts(db, accountId, uuid),
      ]);
      if (!row || !facts) throw noSuchDevice();
      const { connectorId, ...rest } = facts;
      return {
        // Who reads it with a key is no device.
        device: toFound(account.key ? null : keys, row, connectorsById(listConnectors())),
        connector: describeConnector(listConnectors(), { uuid, connectorId }),
        ...rest,
        timestamp: request.now(),
      };
    },
  });
}
