import { z } from 'zod';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { cursorQuery, linkNext } from '../http/page.ts';
import { defineRoute } from '../http/route.ts';
import type { Route } from '../http/route.ts';
import { cursorTs, DeviceParams, limitQuery } from '../http/schema.ts';
import { listNotifications } from './queries.ts';
import { NotificationsResponse } from './schema.ts';

export type NotificationRoutesDependencies = {
  db: Sql;
  /** Null when the account has no such device. */
  findDeviceId: (accountId: number, deviceAuthUuid: string) => Promise<number | null>;
};

const Cursor = z.object({ ts: cursorTs, id: z.int() });

/** `GET /v2/devices/{deviceAuthUuid}/notifications`: what became of a device's push and SMS. */
export function notificationRoutes({ db, findDeviceId }: NotificationRoutesDependencies): Route[] {
  return [
    defineRoute({
      name: 'listNotifications',
      scope: 'alarms:read',
      method: 'get',
      path: '/v2/devices/{deviceAuthUuid}/notifications',
      summary: 'Get notifications',
      description: 'Push and SMS of a device, newest first: one outcome for each recipient.',
      tag: 'Devices',
      auth: 'account',
      params: DeviceParams,
      query: z.object({ limit: limitQuery(100, 10), cursor: cursorQuery(Cursor) }),
      response: NotificationsResponse,
      responseHeaders: { Link: 'The next page, where there is one.' },
      errors: [404],
      handler: async ({ account, params, query, request }) => {
        const deviceId = await findDeviceId(account.accountId, params.deviceAuthUuid);
        if (deviceId === null) throw new DomainError('not-found', 'There is no such device.');
        const { limit, cursor: after } = query;
        const found = await listNotifications(db, deviceId, { limit: limit + 1, after });
        const notifications = found.slice(0, limit);
        const last = notifications.at(-1);
        if (last && found.length > limit) {
          linkNext(request, { ts: last.timestamp, id: last.notificationId });
        }
        return { notifications, timestamp: request.now() };
      },
    }),
  ];
}
