import { DeviceParams, lastTs } from '../http/schema.ts';
import { Readable } from 'node:stream';
import type { Database } from '../db/database.ts';
import type { HistoryKind } from '../history/kind.ts';
import { linkNext } from '../http/page.ts';
import { stream } from '../http/answer.ts';
import type { RequestInfo } from '../http/request.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Exports } from '../quotas/exports.ts';
import { csvType } from '../lib/media-types.ts';
import { exportRoute } from './export-route.ts';
import { latestRoute } from './latest-route.ts';
import { listMeasurements, listMeasuredSenses, toCursor, toMeasurementView } from './queries.ts';
import type { MeasurementRange } from './queries.ts';
import { MeasurementQuery, MeasurementResponse, type BucketWidth } from './schema.ts';
import { walkBuckets } from './walk-buckets.ts';
import { bucketsAsCsv, bucketsAsJson, measurementsAsCsv } from './write-list.ts';

export type MeasurementRoutesDeps = {
  db: Database;
  kind: HistoryKind;
  /** Throws `not-found` unless the device is the account's. */
  getDeviceId: (accountId: number, deviceAuthUuid: string) => Promise<number>;
  exports: Exports;
};

/** What devices measured, for dashboards: an addition to the specification. */
export function measurementRoutes(deps: MeasurementRoutesDeps): Route[] {
  return [
    latestRoute(deps),
    exportRoute(deps),
    defineRoute({
      name: 'listMeasurements',
      scope: 'data:read',
      method: 'get',
      path: '/v2/measurements/{deviceAuthUuid}',
      summary: 'Get measurements',
      description:
        'Points, newest first, page by page; or, with `bucket`, all buckets of the range, newest ' +
        'first, without positions; days and months begin as the clocks of `tz` have it. In ranges of more than a week what arrives late is in the buckets ' +
        'within five minutes. At most two with `bucket` are answered at once (the quota `exports`); others ' +
        'wait for ten seconds, then 429.',
      tag: 'Measurements',
      errors: [400, 401, 404, 503],
      responseHeaders: { Link: 'The next page of points, where there is one.' },
      streams: { types: [csvType], json: true },
      auth: 'account',
      room: 2_097_152,
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
  const found = await listMeasurements(db, range, limit + 1, cursor);
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
  const chunks = await run(walkBuckets(db, kind, range, buckets));
  return asCsv
    ? stream(csvType, bucketsAsCsv(chunks))
    : stream('application/json', bucketsAsJson(chunks, timestamp));
}
