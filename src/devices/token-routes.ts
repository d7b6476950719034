import { DeviceParams } from '../http/schema.ts';
import { doneBy } from '../audit/entry.ts';
import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import { defineRoute } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { noSuchDevice } from './no-such-device.ts';
import { raiseTokenVersion } from './access-queries.ts';
import { RotatedToken, TokenRotation } from './schema.ts';
import { deriveToken } from './token.ts';

export type TokenRouteDeps = { db: Sql; bus: Bus; keys: readonly Buffer[] };

/**
 * Gives a device a new token. The old one works until the new one is first used, so that a device
 * can be told of it by the old way; with `revoke` it is retired at once.
 */
export function tokenRoute({ db, bus, keys }: TokenRouteDeps): Route {
  return defineRoute({
    name: 'rotateDeviceToken',
    scope: 'devices:write',
    method: 'post',
    path: '/v2/devices/{deviceAuthUuid}/token',
    summary: 'Rotate a device token',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    body: TokenRotation,
    example: { revoke: false },
    response: RotatedToken,
    errors: [404],
    handler: async ({ account, params, body, request }) => {
      const uuid = params.deviceAuthUuid;
      const raised = await raiseTokenVersion(db, {
        accountId: account.accountId,
        uuid,
        keepPrevious: !body.revoke,
        ...doneBy(account, request),
      });
      if (!raised) throw noSuchDevice();
      bus.publish('access', { deviceId: raised.deviceId, uuid });
      const deviceAuthToken = deriveToken(keys, uuid, raised.version);
      return { deviceAuthToken, timestamp: request.now() };
    },
  });
}
