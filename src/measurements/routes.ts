import { Readable } from 'node:stream';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { listAskedDevices } from '../devices/select.ts';
import type { HistoryKind } from '../history/retention.ts';
import { stream } from '../http/answer.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { labelsOf } from '../http/router.ts';
import { DeviceParams, lastTs, linkNext } from '../http/schema.ts';
import { csvType } from '../lib/text.ts';
import type { Exports } from '../quotas/exports.ts';
import { exportRoute } from './export.ts';
import { lateRoute } from './late.ts';
import {
  listLatest,
  listMeasuredSenses,
  listMeasurements,
  type MeasurementRange,
  toCursor,
  toMeasurementView,
  walkBuckets,
} from './queries.ts';
import {
  type BucketView,
  type BucketWidth,
  LatestQuery,
  LatestResponse,
  MeasurementQuery,
  MeasurementResponse,
  type MeasurementView,
} from './schema.ts';

type MeasurementRoutesDeps = {
  db: Database;
  kind: HistoryKind;
  /** Throws `not-found` unless the device is the account's. */
  getDeviceId: (accountId: number, deviceAuthUuid: string) => Promise<number>;
  exports: Exports;
};

/** Measurements, for dashboards: an addition to the specification. */
export function measurementRoutes(deps: MeasurementRoutesDeps): Route[] {
  return [
    latestRoute(deps),
    exportRoute(deps),
    lateRoute(deps),
    defineRoute({
      name: 'listMeasurements',
      scope: 'data:read',
      method: 'get',
      path: '/v2/measurements/{deviceAuthUuid}',
      summary: 'Get measurements',
      description:
        'Points, newest first, page by page. With `bucket`: all buckets of the range, newest ' +
        'first, without positions; days and months begin according to the time zone `tz`. In ' +
        'ranges of more than a week, late arrivals appear in the buckets within five minutes. ' +
        'At most two requests with `bucket` run at once (the quota `exports`); further ones ' +
        'wait up to ten seconds, then get 429.',
      tag: 'Measurements',
      errors: [400, 401, 404, 503],
      responseHeaders: { Link: 'The next page of points, if there is one.' },
      streams: { types: [csvType], json: true },
      auth: 'account',
      answerBytes: 2_097_152,
      params: DeviceParams,
      query: MeasurementQuery,
      response: MeasurementResponse,
      handler: async ({ params, query, account, request }) => {
        const deviceId = await deps.getDeviceId(account.accountId, params.deviceAuthUuid);
        const wanted = query.senses?.length ? query.senses : undefined;
        const senses = await listMeasuredSenses(deps.db, deviceId, wanted);
        const range = { senses, start: query.start, end: query.end ?? lastTs };
        const asCsv = request.accepts('application/json', csvType) === csvType;
        return query.bucket === undefined
          ? answerPoints(deps, range, query, request, asCsv)
          : answerBuckets(deps, range, { width: query.bucket, tz: query.tz ?? 'UTC' }, asCsv, {
              timestamp: request.now(),
              run: (pages) => deps.exports.run(account.accountId, request.signal, pages),
            });
      },
    }),
  ];
}

async function answerPoints(
  { db }: MeasurementRoutesDeps,
  range: MeasurementRange,
  { limit, cursor }: MeasurementQuery,
  request: RequestInfo,
  asCsv: boolean,
) {
  const found = await listMeasurements(db, range, limit + 1, request.now(), cursor);
  const page = found.slice(0, limit);
  const last = page.at(-1);
  if (last && found.length > page.length) linkNext(request, toCursor(last));
  const measurements = page.map(toMeasurementView);
  if (asCsv) return stream(csvType, Readable.from(measurementsAsCsv(measurements)));
  return { measurements, timestamp: request.now() };
}

type BucketsAnswer = {
  timestamp: number;
  run: <T>(pages: AsyncIterable<T>) => Promise<AsyncIterable<T>>;
};

async function answerBuckets(
  { db, kind }: MeasurementRoutesDeps,
  range: MeasurementRange,
  buckets: { width: BucketWidth; tz: string },
  asCsv: boolean,
  { timestamp, run }: BucketsAnswer,
) {
  const chunks = await run(walkBuckets(db, kind, range, { ...buckets, nowTs: timestamp }));
  return asCsv
    ? stream(csvType, bucketsAsCsv(chunks))
    : stream('application/json', bucketsAsJson(chunks, timestamp));
}

/** The newest value of each sense of many devices, for lists and wall displays. */
function latestRoute({ db }: { db: Sql }): Route {
  return defineRoute({
    name: 'listLatestMeasurements',
    scope: 'data:read',
    method: 'get',
    path: '/v2/measurements/latest',
    summary: 'Get the newest measurements of many devices',
    description:
      'The newest value of each sense that has ever measured something, by device in order of ' +
      'registration. All devices of the account, the named ones, or those with a label; page ' +
      'by page.',
    tag: 'Measurements',
    errors: [400, 404],
    responseHeaders: { Link: 'The next page of devices, if there is one.' },
    auth: 'account',
    answerBytes: 4_194_304,
    query: LatestQuery,
    response: LatestResponse,
    handler: async ({ query, account, request }) => {
      const { devices: uuids, label, describe, limit, cursor } = query;
      const senses = query.senses?.length ? query.senses : undefined;
      const filter = { uuids, label, labels: labelsOf(account) };
      const found = await listAskedDevices(db, account.accountId, filter, {
        page: { limit: limit + 1, after: cursor ?? 0 },
      });
      const page = found.slice(0, limit);
      const last = page.at(-1);
      if (last && found.length > page.length) linkNext(request, last.id);
      const latest = await listLatest(db, page, senses, { isDescribed: describe === true });
      return { latest, timestamp: request.now() };
    },
  });
}

// No field here ever needs quotes.
const measurementHeader = 'sId,ts,val,lat,long\r\n';
const bucketHeader = 'sId,ts,min,max,avg,count,last\r\n';

/** A position leaves `val` empty; a number leaves `lat` and `long` empty. */
function* measurementsAsCsv(rows: MeasurementView[]): Generator<string> {
  yield measurementHeader;
  for (const { sId, ts, val } of rows) {
    yield typeof val === 'number'
      ? `${sId},${ts},${val},,\r\n`
      : `${sId},${ts},,${val.lat},${val.long}\r\n`;
  }
}

async function* bucketsAsCsv(chunks: AsyncIterable<BucketView[]>): AsyncGenerator<string> {
  yield bucketHeader;
  for await (const rows of chunks) {
    yield rows
      .map((b) => `${b.sId},${b.ts},${b.min},${b.max},${b.avg},${b.count},${b.last}\r\n`)
      .join('');
  }
}

/** Writes `{buckets: […], timestamp}` chunk by chunk. */
async function* bucketsAsJson(
  chunks: AsyncIterable<BucketView[]>,
  timestamp: number,
): AsyncGenerator<string> {
  let separator = '';
  yield '{"buckets":[';
  for await (const rows of chunks) {
    yield separator + rows.map((row) => JSON.stringify(row)).join(',');
    separator = ',';
  }
  yield `],"timestamp":${timestamp}}`;
}
