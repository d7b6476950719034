import { DeviceParams } from '../http/schema.ts';
import { doneBy } from '../audit/entry.ts';
import type { Bus } from '../bus/bus.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { defineRoute } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { noSuchDevice } from './no-such-device.ts';
import { raiseTokenVersion } from './tokens.ts';
import { RotatedToken, TokenRotation } from './registration-schema.ts';
import { deriveToken } from './token.ts';

/** The new version of the token, and when it was made. */
type Rotated = { version: number; timestamp: number };

export type TokenRouteDeps = { db: Database; bus: Bus; keys: readonly Buffer[]; secretId: string };

/**
 * Gives a device a new token. The old one works until the new one is first used, so that a device
 * can be told of it by the old way; with `revoke` it is retired at once.
 */
export function tokenRoute({ db, bus, keys, secretId }: TokenRouteDeps): Route {
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
    takesKey: true,
    errors: [404],
    handler: async ({ account, params, body, request, once }) => {
      const uuid = params.deviceAuthUuid;
      const { version, timestamp } = await once<Rotated>(async (keep) => {
        const rotate = async (sql: Sql) => {
          const raised = await raiseTokenVersion(sql, {
            accountId: account.accountId,
            uuid,
            keepPrevious: !body.revoke,
            secretId,
            ...doneBy(account, request),
          });
          if (!raised) throw noSuchDevice();
          const made = { version: raised.version, timestamp: request.now() };
          await keep?.(sql, made);
          return { ...raised, ...made };
        };
        const { deviceId, ...made } = await (keep ? db.transaction(rotate) : rotate(db));
        bus.publish('access', { deviceId, uuid });
        return made;
      });
      return { deviceAuthToken: deriveToken(keys, uuid, version), timestamp };
    },
  });
}
