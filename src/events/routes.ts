import { DeviceParams } from '../http/schema.ts';
import { linkNext } from '../http/page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { eventExportRoute } from './export-route.ts';
import { listEvents } from './queries.ts';
import { EventList, EventQuery } from './schema.ts';
import { streamRoutes, type StreamRoutesDeps } from './stream-routes.ts';
import { toEventView } from './view.ts';

/** Specification section 4.4. */
export function eventRoutes(deps: StreamRoutesDeps): Route[] {
  const { db, getDeviceId } = deps;
  return [
    // First: their paths look like a device's.
    ...streamRoutes(deps),
    eventExportRoute(deps),
    defineRoute({
      name: 'listDeviceEvents',
      scope: 'data:read',
      method: 'get',
      path: '/v2/events/{deviceAuthUuid}',
      summary: 'Get device events',
      description: 'Newest first; a Link header names the next page.',
      tag: 'Events',
      errors: [400, 401, 404, 503],
      responseHeaders: { Link: 'The next page, where there is one.' },
      auth: 'account',
      room: 2_097_152,
      params: DeviceParams,
      query: EventQuery,
      response: EventList,
      handler: async ({ params, query, account, request }) => {
        const deviceId = await getDeviceId(account.accountId, params.deviceAuthUuid);
        const { limit, cursor, ...range } = query;
        const filter = { deviceId, ...range, after: cursor };
        const found = await listEvents(db, filter, request.receivedTs);
        const page = found.slice(0, limit);
        const last = page.at(-1);
        if (last && found.length > page.length) linkNext(request, [last.ts, last.key]);
        return { events: page.map((row) => toEventView(row, params.deviceAuthUuid)) };
      },
    }),
  ];
}
