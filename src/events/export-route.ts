import type { Database } from '../db/database.ts';
import {
  listFilteredDevices,
  refuseLabelList,
  type ExportedDevice,
} from '../exports/list-devices.ts';
import { refuseTooMuch } from '../exports/exports.ts';
import { refuseUnknown } from '../http/refuse-unknown.ts';
import { asJsonList, asLines } from '../exports/text.ts';
import { csvType, ndjsonType } from '../lib/media-types.ts';
import { typeOf } from '../exports/types.ts';
import { labelsOf } from '../http/rights.ts';
import { stream } from '../http/answer.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { lastTs } from '../http/schema.ts';
import type { Exports } from '../quotas/exports.ts';
import { csvHeader } from './export-csv.ts';
import { type EventExportFilter, tagsOf, walkEvents } from './export.ts';
import { EventExport, EventExportQuery } from './export-schema.ts';

export type EventExportDeps = { db: Database; exports: Pick<Exports, 'run'> };

const formats = { 'application/json': 'json', [csvType]: 'csv', [ndjsonType]: 'ndjson' } as const;
const same = (text: string) => text;

/** What happened to many devices, in one answer that is sent as it is read. */
export function eventExportRoute({ db, exports }: EventExportDeps): Route {
  return defineRoute({
    name: 'queryEvents',
    scope: 'data:read',
    method: 'get',
    path: '/v2/events',
    summary: 'Query the events of many devices',
    description:
      'Of the devices named, or of those with a label: all events of the range, one device behind the other. ' +
      'JSON, CSV or, with `Accept: application/x-ndjson`, a line for each. A million events at most.',
    tag: 'Events',
    errors: [400, 404],
    streams: { types: [csvType, ndjsonType], json: true },
    auth: 'account',
    room: 16_777_216,
    query: EventExportQuery,
    response: EventExport,
    handler: async ({ query, account, request }) => {
      const { accountId } = account;
      const { devices: uuids, label, purpose, state, type, senses } = query;
      const named = { uuids, label, labels: labelsOf(account) };
      await refuseLabelList(db, accountId, named);
      const devices = await listFilteredDevices(db, accountId, named);
      // A label that is named too may leave some of them out.
      if (uuids && label === undefined) refuseUnknown(uuids, devices);
      const { start = 0, end = lastTs, order } = query;
      const cause = { puId: purpose ?? state?.puId, stId: state?.stId };
      const filter = { type, senses, cause, start, end, order };
      await refuseTooManyEvents(db, devices, filter);
      const media = typeOf(request);
      const walk = isEmpty(query) ? [] : devices;
      const blocks = await exports.run(
        accountId,
        request.signal,
        walkEvents(db, walk, filter, formats[media]),
      );
      if (media === csvType) return stream(media, asLines(blocks, same, csvHeader));
      if (media === ndjsonType) return stream(media, asLines(blocks, same));
      return stream(media, asJsonList('events', blocks, same, request.now()));
    },
  });
}

/** What no event can be: a device event by a sense, or of one purpose in a state of another. */
function isEmpty({ type, senses, purpose, state }: EventExportQuery): boolean {
  if (type === 'device' && senses?.length) return true;
  return purpose !== undefined && state !== undefined && purpose !== state.puId;
}

/** Throws `invalid-input` where there is more in the range than one answer has. */
async function refuseTooManyEvents(
  db: Database,
  devices: ExportedDevice[],
  filter: EventExportFilter,
): Promise<void> {
  const { table, column, tags } = tagsOf(filter);
  const text = `
    select from ${table}
     where device_id = any($1::bigint[]) and ${column} = any($2::text[])
       and ts between ms_to_timestamp($3) and ms_to_timestamp($4)`;
  const values = [devices.map(({ id }) => id), tags, filter.start, filter.end];
  await refuseTooMuch(
    db,
    { text, values },
    { most: 1_000_000, what: 'events', instead: 'a shorter range, fewer devices, or for a type' },
  );
}
