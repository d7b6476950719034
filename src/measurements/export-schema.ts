import { z } from 'zod';
import { devicesQuery, namesOf, sensesQuery } from '../http/list-query.ts';
import { lastTs, timestamp } from '../http/schema.ts';
import { isTimeZone } from '../lib/time-zone.ts';
import { BucketView, LatestView } from './schema.ts';

/** Milliseconds since the epoch, or ISO 8601 with an offset; a date alone is its first moment in UTC. */
const Time = z
  .string()
  .max(40)
  .transform((text, context): number => {
    const isDigits = /^\d{1,16}$/.test(text);
    const isIso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d))?$/.test(text);
    const ts = isDigits ? Number(text) : isIso ? new Date(text).getTime() : Number.NaN;
    if (ts >= 0 && ts <= lastTs) return ts;
    const message = 'expected milliseconds since 1970, or a time such as 2026-11-23T08:00:00Z';
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  })
  .meta({
    override: ({ jsonSchema }: { jsonSchema: object }) => {
      Object.assign(jsonSchema, {
        type: 'string',
        description: 'Inclusive: milliseconds since 1970, or ISO 8601 with an offset.',
        example: '2026-11-23T08:00:00Z',
      });
    },
  });

export type Unit = 's' | 'm' | 'h' | 'd' | 'mo';
/** So many units wide. */
export type BucketWidth = { count: number; unit: Unit };

const Bucket = z
  .string()
  .regex(/^0*[1-9]\d{0,5}(s|m|h|d|mo)$/, 'expected a positive whole number of s, m, h, d or mo')
  .transform((text): BucketWidth => {
    const [, digits = '1', unit = 's'] = /^(\d+)(\w+)$/.exec(text) ?? [];
    return { count: Number(digits), unit: unit as Unit };
  })
  .meta({ description: 'Width: a whole number of s, m, h, d or months (mo).', example: '1d' });

export const statNames = ['min', 'max', 'avg', 'sum', 'count', 'first', 'last', 'delta'] as const;
export type StatName = (typeof statNames)[number];

const Stats = z
  .string()
  .transform(namesOf)
  .pipe(z.array(z.enum(statNames)).min(1).max(statNames.length))
  .meta({ description: `Some of ${statNames.join(', ')}; min,max,avg,last,count if absent.` });

/** Devices that are named in one request. */
const maxDevices = 500;

export const ExportQuery = z
  .strictObject({
    devices: devicesQuery(maxDevices),
    label: z.string().min(1).max(64).optional().meta({ description: 'Devices with this label.' }),
    senses: sensesQuery,
    start: Time.optional(),
    end: Time.optional(),
    bucket: Bucket.optional(),
    tz: z
      .string()
      .max(64)
      .refine(isTimeZone, 'expected a name of the IANA database, such as Europe/Berlin')
      .optional()
      .meta({ description: 'In which days and months begin; UTC if absent.' }),
    stats: Stats.optional(),
    order: z.enum(['asc', 'desc']).default('asc').meta({ description: 'By time, in each series.' }),
    shape: z.enum(['rows', 'columns']).default('rows').meta({
      description: 'columns: a list of times and one of values for each series; of JSON only.',
    }),
  })
  .superRefine(({ devices, label, bucket, stats, tz, shape }, context) => {
    const say = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    if (!devices && label === undefined) say('devices', 'name devices, or a label');
    if (!bucket && stats) say('stats', 'is of buckets: give bucket too');
    if (!bucket && tz !== undefined) say('tz', 'is of buckets: give bucket too');
    if (bucket && shape === 'columns') say('shape', 'columns are of points, not of buckets');
  });
export type ExportQuery = z.output<typeof ExportQuery>;

const Series = z
  .object({
    deviceAuthUuid: z.guid(),
    sId: z.string(),
    ts: z.array(timestamp),
    val: z.array(LatestView.shape.val),
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
    deviceAuthUuid: z.guid(),
    sum: z.number().optional(),
    first: z.number().optional(),
    delta: z.number().optional().meta({ description: 'The last value less the first.' }),
  })
  .meta({ id: 'DeviceBucket' });

export const ExportResponse = z.union([
  z.object({ measurements: z.array(LatestView), timestamp }),
  z.object({ series: z.array(Series), timestamp }),
  z.object({ buckets: z.array(ExportedBucket), timestamp }),
]);
