import type { Sql } from '../db/sql.ts';
import { listFilteredDevices, refuseLabelList } from '../exports/list-devices.ts';
import { refuseUnknown } from '../http/refuse-unknown.ts';
import { linkNext } from '../http/page.ts';
import { labelsOf } from '../http/rights.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { listLatest } from './latest.ts';
import { LatestQuery, LatestResponse } from './schema.ts';

/** The newest value of each sense of many devices, for lists and walls. */
export function latestRoute({ db }: { db: Sql }): Route {
  return defineRoute({
    name: 'listLatestMeasurements',
    scope: 'data:read',
    method: 'get',
    path: '/v2/measurements/latest',
    summary: 'Get the newest measurements of many devices',
    description:
      'Of each sense that ever measured something the newest value, by device in the order of their ' +
      'registration. All devices of the account, those named, or those that have a label; page by page.',
    tag: 'Measurements',
    errors: [400, 404],
    responseHeaders: { Link: 'The next page of devices, where there is one.' },
    auth: 'account',
    room: 4_194_304,
    query: LatestQuery,
    response: LatestResponse,
    handler: async ({ query, account, request }) => {
      const { devices: uuids, label, describe, limit, cursor } = query;
      const senses = query.senses?.length ? query.senses : undefined;
      const filter = { uuids, label, labels: labelsOf(account) };
      await refuseLabelList(db, account.accountId, filter);
      const found = await listFilteredDevices(db, account.accountId, filter, {
        limit: limit + 1,
        after: cursor ?? 0,
      });
      // A label that is named too may leave some of them out: only then fewer are right.
      if (uuids && label === undefined && cursor === undefined) refuseUnknown(uuids, found);
      const page = found.slice(0, limit);
      const last = page.at(-1);
      if (last && found.length > page.length) linkNext(request, last.id);
      const latest = await listLatest(db, page, senses, { isDescribed: describe === true });
      return { latest, timestamp: request.now() };
    },
  });
}
