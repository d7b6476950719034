import { DeviceParams } from '../http/schema.ts';
import type { Sql } from '../db/sql.ts';
import { defineRoute } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { noSuchDevice } from './no-such-device.ts';
import { findDeviceId } from './queries.ts';
import { listRejections } from './rejections.ts';
import { RejectionList, RejectionsQuery } from './rejection-schema.ts';

/** What a device sent that was refused. */
export function rejectionsRoute({ db }: { db: Sql }): Route {
  return defineRoute({
    name: 'listRejections',
    scope: 'devices:read',
    method: 'get',
    path: '/v2/devices/{deviceAuthUuid}/rejections',
    summary: 'List what a device sent that was wrong',
    description:
      'Newest first; the newest 1,000 of a device are kept, and 1 MiB of them. Of one message the first ' +
      '10 are kept one by one, the others as a number. Of one minute the first 60 are: what is wrong ' +
      'beyond them is `more-of-minute`, one for the minute, with the number in `more`.',
    tag: 'Devices',
    auth: 'account',
    params: DeviceParams,
    query: RejectionsQuery,
    response: RejectionList,
    errors: [404],
    room: 4_194_304,
    handler: async ({ account, params, query, request }) => {
      const deviceId = await findDeviceId(db, account.accountId, params.deviceAuthUuid);
      if (deviceId === null) throw noSuchDevice();
      const rows = await listRejections(db, deviceId, query.limit);
      const rejections = rows.map(({ rejected_at, path, more, details, ...rest }) => ({
        timestamp: rejected_at,
        ...rest,
        path: path ?? undefined,
        more: more ?? undefined,
        details: details ?? undefined,
      }));
      return { rejections, timestamp: request.now() };
    },
  });
}
