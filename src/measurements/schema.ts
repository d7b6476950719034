import { z } from 'zod';
import { Position } from '../contract/values.ts';
import { devicesMembers, needDevices, rangeMembers } from '../exports/exports.ts';
import {
  cursorQuery,
  cursorText,
  cursorTs,
  deviceUuid,
  flagQuery,
  limitQuery,
  namesOf,
  sensesQuery,
  timestamp,
  timestampQuery,
} from '../http/schema.ts';
import { isTimeZone } from '../lib/time.ts';

const measured = { sId: z.string(), val: z.union([z.number(), Position]), ts: timestamp };

export const MeasurementView = z.object(measured).meta({ id: 'Measurement' });
export type MeasurementView = z.infer<typeof MeasurementView>;

export const BucketView = z
  .object({
    sId: z.string(),
    ts: timestamp.meta({
      description: 'Where the bucket begins. Buckets are counted from 1970 in the time zone.',
    }),
    min: z.number(),
    max: z.number(),
    avg: z.number(),
    count: z.int(),
    last: z.number().meta({ description: 'The newest value in the bucket.' }),
  })
  .meta({ id: 'Bucket' });
export type BucketView = z.infer<typeof BucketView>;

/** Where a page ends: ts in ms, the microseconds within it, and the sense. */
export const MeasurementCursor = z.tuple([cursorTs, z.int().min(0).max(999), cursorText]);
export type MeasurementCursor = z.infer<typeof MeasurementCursor>;

/** A measurement with its device. */
const DeviceMeasurement = z
  .object({
    deviceAuthUuid: deviceUuid,
    ...measured,
    arrivedTs: timestamp
      .nullable()
      .optional()
      .meta({
        description:
          'With `columns=arrivedTs`: when the value counts as arrived; null if that is not known, as of imported values ' +
          'and of those that versions up to 0.4.0 stored.',
      }),
    nth: z
      .int()
      .nullable()
      .optional()
      .meta({
        description:
          'With `columns=arrivedTs`: its place among what arrived in that millisecond; −1 − place if the service gave it ' +
          'its time.',
      }),
  })
  .meta({ id: 'DeviceMeasurement' });

export const LatestView = z
  .object({
    deviceAuthUuid: deviceUuid,
    ...measured,
    name: z.string().optional().meta({ description: 'With `describe`: the name of the sense.' }),
    unit: z.string().optional().meta({ description: 'With `describe`: the unit of the values.' }),
    decimals: z
      .int()
      .optional()
      .meta({ description: 'With `describe`: how many decimals to show.' }),
    beforeTs: timestamp.optional().meta({
      description: 'With `describe`: when the value before it was measured, if there is one.',
    }),
    above: z
      .number()
      .optional()
      .meta({
        description:
          'With `describe`: values above it open an alarm, by the simplest limit of the current profile: an event with ' +
          'one cause that compares single values with one number.',
      }),
    below: z.number().optional().meta({
      description: 'With `describe`: values below it open an alarm, as `above`.',
    }),
  })
  .meta({ id: 'LatestMeasurement' });
export type LatestView = z.infer<typeof LatestView>;

export const LatestResponse = z.object({ latest: z.array(LatestView), timestamp });

type BucketUnit = 's' | 'm' | 'h' | 'd' | 'mo';
export type BucketWidth = { count: number; unit: BucketUnit };

/** A month counts as its longest. */
export const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, mo: 31 * 86_400_000 };
/** A bucket wider than a century is of no use, and its bounds would exceed what a timestamp can hold. */
const maxDays = 36_500;
export const widestBucketMs = maxDays * 86_400_000;

/** `bucket` of a query, such as `15m` or `1mo`. */
const bucketQuery = z
  .string()
  .regex(
    /^0*[1-9]\d{0,9}(s|m|h|d|mo)$/,
    'expected a positive whole number followed by s, m, h, d or mo, such as 15m',
  )
  .transform((text): BucketWidth => {
    const [, digits = '1', unit = 's'] = /^(\d+)(\w+)$/.exec(text) ?? [];
    return { count: Number(digits), unit: unit as BucketUnit };
  })
  .refine(
    ({ count, unit }) => count * unitMs[unit] <= widestBucketMs,
    `is wider than ${maxDays} days`,
  )
  .optional()
  .meta({
    description:
      'Width of a bucket: a whole number of seconds, minutes, hours, days or months: 15m, 1d, 1mo.',
  });

/** `tz` of a query. */
const timeZoneQuery = z
  .string()
  .max(64)
  .refine(isTimeZone, 'expected a time zone name from the IANA database, such as Europe/Berlin')
  .optional()
  .meta({ description: 'The time zone whose days and months the buckets follow; UTC if absent.' });

/** For `superRefine`. */
function needBucket(
  { bucket, tz }: { bucket?: BucketWidth | undefined; tz?: string | undefined },
  context: z.RefinementCtx,
): void {
  if (bucket || tz === undefined) return;
  context.addIssue({
    code: 'custom',
    path: ['tz'],
    message: 'applies only to buckets: add bucket',
  });
}

export const MeasurementQuery = z
  .object({
    senses: sensesQuery,
    start: timestampQuery.default(0),
    end: timestampQuery.optional(),
    bucket: bucketQuery,
    tz: timeZoneQuery,
    limit: limitQuery(1_000),
    cursor: cursorQuery(MeasurementCursor),
  })
  .superRefine(needBucket);
export type MeasurementQuery = z.output<typeof MeasurementQuery>;

export const MeasurementResponse = z.union([
  z.object({ measurements: z.array(MeasurementView), timestamp }).meta({ id: 'MeasurementList' }),
  z.object({ buckets: z.array(BucketView), timestamp }).meta({ id: 'BucketList' }),
]);

/** Devices per page. */
const maxLatestDevices = 500;

export const LatestQuery = z.strictObject({
  ...devicesMembers,
  senses: sensesQuery,
  describe: flagQuery(
    "Adds `name`, `unit` and `decimals` from the device's configuration of the sense, its plain limits in the current " +
      'profile (`above`, `below`), and when the value before was measured (`beforeTs`).',
  ),
  limit: limitQuery(maxLatestDevices).meta({
    description: `Devices per page; at most ${maxLatestDevices}.`,
  }),
  cursor: cursorQuery(z.int().min(1)),
});

const statNames = ['min', 'max', 'avg', 'sum', 'count', 'first', 'last', 'delta'] as const;
export type StatName = (typeof statNames)[number];

const Stats = z
  .string()
  .transform(namesOf)
  .pipe(z.array(z.enum(statNames)).min(1).max(statNames.length))
  .meta({
    description: `One or more of ${statNames.join(', ')}; min,max,avg,last,count if absent.`,
  });

export const ExportQuery = z
  .strictObject({
    ...devicesMembers,
    senses: sensesQuery,
    bucket: bucketQuery,
    tz: timeZoneQuery,
    stats: Stats.optional(),
    ...rangeMembers,
    shape: z.enum(['rows', 'columns']).default('rows').meta({
      description: 'columns: for each series a list of times and a list of values. JSON only.',
    }),
    columns: z
      .enum(['arrivedTs'])
      .optional()
      .meta({
        description:
          'arrivedTs: adds to each point when it counts as arrived (`arrivedTs`), and its place among what arrived then ' +
          '(`nth`); in CSV the last columns. Not with `bucket` or `shape=columns`.',
      }),
  })
  .superRefine(needDevices)
  .superRefine(needBucket)
  .superRefine(({ bucket, stats, shape, columns }, context) => {
    const say = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (!bucket && stats) say('stats', 'applies only to buckets: add bucket');
    if (bucket && shape === 'columns')
      say('shape', 'columns are available for points, not for buckets');
    if (columns && (bucket || shape === 'columns'))
      say('columns', 'arrivedTs is available for points in rows, not for buckets or shape=columns');
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
    delta: z.number().optional().meta({ description: 'The last value minus the first.' }),
  })
  .meta({ id: 'DeviceBucket' });

export const ExportResponse = z.union([
  z
    .object({ measurements: z.array(DeviceMeasurement), timestamp })
    .meta({ id: 'DeviceMeasurementList' }),
  z.object({ series: z.array(Series), timestamp }).meta({ id: 'SeriesList' }),
  z.object({ buckets: z.array(ExportedBucket), timestamp }).meta({ id: 'DeviceBucketList' }),
]);
