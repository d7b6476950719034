import { z } from 'zod';
import { devicesMembers, needDevices, rangeMembers } from '../exports/query.ts';
import { namesOf, sensesQuery } from '../http/list-query.ts';
import { deviceUuid, timestamp } from '../http/schema.ts';
import { bucketQuery, BucketView, DeviceMeasurement, needBucket, timeZoneQuery } from './schema.ts';

const statNames = ['min', 'max', 'avg', 'sum', 'count', 'first', 'last', 'delta'] as const;
export type StatName = (typeof statNames)[number];

const Stats = z
  .string()
  .transform(namesOf)
  .pipe(z.array(z.enum(statNames)).min(1).max(statNames.length))
  .meta({ description: `Some of ${statNames.join(', ')}; min,max,avg,last,count if absent.` });

export const ExportQuery = z
  .strictObject({
    ...devicesMembers,
    senses: sensesQuery,
    bucket: bucketQuery,
    tz: timeZoneQuery,
    stats: Stats.optional(),
    ...rangeMembers,
    shape: z.enum(['rows', 'columns']).default('rows').meta({
      description: 'columns: a list of times and one of values for each series; of JSON only.',
    }),
  })
  .superRefine(needDevices)
  .superRefine(needBucket)
  .superRefine(({ bucket, stats, shape }, context) => {
    const say = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (!bucket && stats) say('stats', 'is of buckets: give bucket too');
    if (bucket && shape === 'columns') say('shape', 'columns are of points, not of buckets');
  });
export type ExportQuery = z.output<typeof ExportQuery>;

const Series = z
  .object({
    deviceAuthUuid: deviceUuid,
    sId: z.string(),
    ts: z.array(timestamp),
    val: z.array(DeviceMeasurement.shape.val),
  })
  .meta({ id: 'SeriesColumns' });

const ExportedBucket = BucketView.partial({
  min: true,
  max: true,
  avg: true,
  count: true,
  last: true,
})
  .extend({
    deviceAuthUuid: deviceUuid,
    sum: z.number().optional(),
    first: z.number().optional(),
    delta: z.number().optional().meta({ description: 'The last value less the first.' }),
  })
  .meta({ id: 'DeviceBucket' });

export const ExportResponse = z.union([
  z
    .object({ measurements: z.array(DeviceMeasurement), timestamp })
    .meta({ id: 'DeviceMeasurementList' }),
  z.object({ series: z.array(Series), timestamp }).meta({ id: 'SeriesList' }),
  z.object({ buckets: z.array(ExportedBucket), timestamp }).meta({ id: 'DeviceBucketList' }),
]);
