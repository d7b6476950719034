import type { Database } from '../db/database.ts';
import { listFilteredDevices, refuseLabelList } from '../exports/list-devices.ts';
import { refuseUnknown } from '../http/refuse-unknown.ts';
import { asJsonList, asLines } from '../exports/text.ts';
import { csvType, ndjsonType } from '../lib/media-types.ts';
import { typeOf } from '../exports/types.ts';
import { labelsOf } from '../http/rights.ts';
import { stream, type Streamed } from '../http/answer.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { lastTs } from '../http/schema.ts';
import type { Exports } from '../quotas/exports.ts';
import { walkExportBuckets } from './export.ts';
import { walkPoints, type ExportRange, type ExportSeries } from './export-points.ts';
import { ExportQuery, ExportResponse } from './export-schema.ts';
import { listExportSeries, refuseTooManyPoints } from './export-series.ts';
import {
  bucketFields,
  bucketHeader,
  bucketItems,
  bucketLines,
  pointHeader,
  pointItems,
  pointLines,
  seriesItems,
} from './export-text.ts';

export type ExportRouteDeps = { db: Database; exports: Exports };

const defaultStats = ['min', 'max', 'avg', 'last', 'count'] as const;

/** What many devices measured, in one answer that is sent as it is read. */
export function exportRoute({ db, exports }: ExportRouteDeps): Route {
  return defineRoute({
    name: 'queryMeasurements',
    scope: 'data:read',
    method: 'get',
    path: '/v2/measurements',
    summary: 'Query the measurements of many devices',
    description:
      'Of the devices named, or of those with a label: all points of the range, or buckets of them, one ' +
      'series behind the other. JSON, CSV or, with `Accept: application/x-ndjson`, a line for each. Ten ' +
      'million points at most.',
    tag: 'Measurements',
    errors: [400, 404],
    streams: { types: [csvType, ndjsonType], json: true },
    auth: 'account',
    room: 16_777_216,
    query: ExportQuery,
    response: ExportResponse,
    handler: async ({ query, account, request }) => {
      const { accountId } = account;
      const filter = {
        accountId,
        uuids: query.devices,
        label: query.label,
        senses: query.senses?.length ? query.senses : undefined,
        within: labelsOf(account),
      };
      await refuseLabelList(db, accountId, { label: query.label, labels: filter.within });
      if (query.devices && query.label === undefined) {
        const named = { uuids: query.devices, labels: filter.within };
        refuseUnknown(query.devices, await listFilteredDevices(db, accountId, named));
      }
      const series = await listExportSeries(db, filter);
      const { start = 0, end = lastTs, order } = query;
      const range = { start, end, order };
      await refuseTooManyPoints(db, series, range);
      const run = <T>(pages: AsyncIterable<T>) => exports.run(accountId, request.signal, pages);
      return query.bucket
        ? answerBuckets({ db, series, range, run, request }, query)
        : answerPoints({ db, series, range, run, request }, query);
    },
  });
}

type Asked = {
  db: Database;
  series: ExportSeries[];
  range: ExportRange;
  run: <T>(pages: AsyncIterable<T>) => Promise<AsyncIterable<T>>;
  request: RequestInfo;
};

async function answerPoints(
  { db, series, range, run, request }: Asked,
  { shape }: ExportQuery,
): Promise<Streamed> {
  const type = typeOf(request);
  const formats = { [csvType]: 'csv', [ndjsonType]: 'ndjson' } as const;
  const format =
    type === 'application/json' ? (shape === 'rows' ? 'json' : 'columns') : formats[type];
  const blocks = await run(walkPoints(db, series, range, format));
  switch (format) {
    case 'json':
      return stream(type, asJsonList('measurements', blocks, pointItems, request.now()));
    case 'columns':
      return stream(type, asJsonList('series', blocks, seriesItems, request.now()));
    case 'ndjson':
      return stream(type, asLines(blocks, pointLines));
    case 'csv':
      return stream(type, asLines(blocks, pointLines, pointHeader));
  }
}

async function answerBuckets(
  { db, series, range, run, request }: Asked,
  { bucket, tz = 'UTC', stats = [...defaultStats] }: ExportQuery,
): Promise<Streamed> {
  const width = bucket ?? { count: 1, unit: 'h' as const };
  const blocks = await run(walkExportBuckets(db, series, range, { width, tz, stats }));
  const type = typeOf(request);
  if (type === csvType)
    return stream(type, asLines(blocks, bucketFields(stats), bucketHeader(stats)));
  if (type === ndjsonType) return stream(type, asLines(blocks, bucketLines));
  return stream(type, asJsonList('buckets', blocks, bucketItems, request.now()));
}
