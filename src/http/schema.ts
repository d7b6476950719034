import { z } from 'zod';
import { readTime } from '../lib/time.ts';
import type { RequestInfo } from './request.ts';

/** Milliseconds since the Unix epoch in a response; specification section 2.1. */
export const timestamp = z.int().meta({
  description: 'Milliseconds since the Unix epoch.',
  example: 1795219200000,
});

/** The same identifiers in all examples of the reference, so that the examples fit together. */
export const exampleIds = {
  device: '0f8fad5b-d9cb-469f-a165-70867728950e',
  purpose: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
  profile: '6f1c1d5e-58a3-4a55-9a80-0a2a5d0a9c11',
  session: 'b3e1f0a2-4c5d-4e6f-8a7b-9c0d1e2f3a4b',
  key: '5a0c7e4d-2b1f-4d3c-9e8a-7f6b5c4d3e2f',
  pushToken: 'f2ca1bb6c7e907d06dafe4687e579fce',
  job: '9e107d9d-372b-4a6b-8c1f-3d5e7f9a1b2c',
  command: '1b4e28ba-2fa1-41d2-883f-0016d3cca427',
  backtest: 'c56a4180-65aa-42ec-a945-5fd21dec0538',
  alarm: 4711,
} as const;

/** The account in the examples. */
export const exampleLogin = {
  email: 'ada@example.org',
  password: 'correct horse battery staple',
} as const;

/** A UUID in a path; anything else is answered 404. */
export const uuidParam = z.guid().toLowerCase();

/** The device in an answer. */
export const deviceUuid = z.guid().meta({ example: exampleIds.device });

/** The device in a path. */
export const DeviceParams = z.object({
  deviceAuthUuid: uuidParam.meta({ example: exampleIds.device }),
});

/** The latest time that both JavaScript and PostgreSQL can represent, in ms. */
export const lastTs = 8_640_000_000_000_000;

/** A time in a cursor, ms. `linkNext` creates none that the database could not read. */
export const cursorTs = z.int().min(0).max(lastTs);

/** A text in a cursor that PostgreSQL can compare with its own texts. */
export const cursorText = z
  .string()
  .refine((text) => !text.includes('\0') && text.isWellFormed(), 'is not valid text');

/**
 * `start` and `end` of a query, on every route: ms since the epoch, or ISO 8601 with an offset. A date alone means its
 * first moment in UTC. Inclusive. Anything else is answered 400.
 */
export const timestampQuery = z
  .string()
  .max(40)
  .transform((text, context): number => {
    const ts = readTime(text);
    if (ts !== null) return ts;
    const message = 'expected milliseconds since 1970 or a time such as 2026-11-23T08:00:00Z';
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  })
  .meta({
    override: ({ jsonSchema }: { jsonSchema: object }) => {
      describeAs(jsonSchema, {
        anyOf: [
          { type: 'integer', minimum: 0, maximum: lastTs },
          { type: 'string', format: 'date-time' },
          { type: 'string', format: 'date' },
        ],
        description:
          'Inclusive. Milliseconds since 1970, or ISO 8601 with an offset ' +
          '(2026-11-23T08:00:00Z). A date alone means its first moment in UTC.',
      });
    },
  });

const limitOf = (max: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'expected a positive integer')
    .transform(Number)
    .refine((limit) => limit >= 1, 'expected a positive integer')
    .transform((limit) => Math.min(limit, max));

/** `limit` of a query: 400 if it is below 1 or no integer; above `max` it counts as `max`, in all lists alike. */
export function limitQuery(max: number, fallback: number = max) {
  return limitOf(max)
    .default(fallback)
    .meta({
      override: ({ jsonSchema }: { jsonSchema: object }) => {
        describeAs(jsonSchema, {
          type: 'integer',
          minimum: 1,
          default: fallback,
          description: `At most ${max}; a larger number counts as ${max}.`,
        });
      },
    });
}

/** The same for a limit whose absence has a meaning. */
export function optionalLimitQuery(max: number, description: string) {
  return limitOf(max)
    .optional()
    .meta({
      override: ({ jsonSchema }: { jsonSchema: object }) => {
        describeAs(jsonSchema, { type: 'integer', minimum: 1, description });
      },
    });
}

/** A state of a query, `puId:stId`. */
export const stateQuery = z
  .string()
  .regex(/^-?\d{1,10}:-?\d{1,10}$/, 'expected puId:stId, such as 1:2')
  .transform((text) => {
    const [puId = 0, stId = 0] = text.split(':').map(Number);
    return { puId, stId };
  })
  .refine(
    (state) => Object.values(state).every((id) => Math.abs(id) <= 2_147_483_647),
    'does not name a purpose and a state',
  )
  .meta({ description: 'puId:stId', example: '1:2' });

/** `true` or `false` in a query. */
export function flagQuery(description: string) {
  return z
    .enum(['true', 'false'])
    .transform((text) => text === 'true')
    .optional()
    .meta({
      override: ({ jsonSchema }: { jsonSchema: object }) => {
        describeAs(jsonSchema, { type: 'boolean', description });
      },
    });
}

/** Replaces a schema in the reference. A query's number arrives as text, and the reference shows what it means. */
export function describeAs(jsonSchema: object, meant: object): void {
  for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key);
  Object.assign(jsonSchema, meant);
}

/** `{ message, timestamp }`: the answer to removals. */
export const MessageResponse = z
  .object({ timestamp, message: z.string() })
  .meta({ id: 'MessageResponse' });
export type MessageResponse = z.infer<typeof MessageResponse>;

export const TimestampResponse = z.object({ timestamp }).meta({ id: 'TimestampResponse' });
export type TimestampResponse = z.infer<typeof TimestampResponse>;

/** Names separated by commas, without duplicates. */
export const namesOf = (text: string) =>
  [...new Set(text.split(',').map((name) => name.trim()))].filter(Boolean);

/** `senses` of a query. */
export const sensesQuery = z
  .string()
  .transform(namesOf)
  .refine((senses) => senses.length <= 256, 'names more than 256 senses')
  .optional()
  .meta({ description: 'Only these senses: 0x1a,0x1b' });

/** Devices that a query may name: as many fit into a request's head of 16 KiB, even with %2C as separator. */
const maxQueryDevices = 400;

/** `devices` of a query, by their identifiers. */
export const devicesQuery = z
  .string()
  .transform(namesOf)
  .pipe(
    z
      .array(z.guid('is not a deviceAuthUuid').toLowerCase())
      .min(1)
      .max(maxQueryDevices, `names more than ${maxQueryDevices} devices`),
  )
  .optional()
  .meta({
    description: `Only these devices, at most ${maxQueryDevices}, by \`deviceAuthUuid\`, separated by commas.`,
    example: exampleIds.device,
  });

const maxLabelLength = 64;

const oneLabel = z
  .string()
  .min(1)
  .refine(
    (label) => Array.from(label).length <= maxLabelLength,
    `expected at most ${maxLabelLength} characters`,
  );

/** `label` of a query: a single label, which may contain commas (`refuseLabelList`). */
export const labelQuery = oneLabel
  .optional()
  .meta({ description: 'Only devices with this label. One label: a comma is part of it.' });

const mostLabels = 8;

/** One label, or several: devices that have all of these. */
export const namedLabels = z.union([oneLabel, z.array(oneLabel).max(mostLabels)]);

/** `label` of a query that may be repeated: devices that have all of these. */
export const labelsQuery = namedLabels
  .transform((labels) => (typeof labels === 'string' ? [labels] : labels))
  .optional()
  .meta({
    override: ({ jsonSchema }: { jsonSchema: object }) => {
      describeAs(jsonSchema, {
        // One alone is described too: programs generated from an earlier description pass a string.
        anyOf: [
          { type: 'string', minLength: 1, maxLength: maxLabelLength },
          {
            type: 'array',
            items: { type: 'string', minLength: 1, maxLength: maxLabelLength },
            maxItems: mostLabels,
          },
        ],
        description:
          'Only devices with this label; repeated, with all of these. A comma is part of a label.',
      });
    },
  });

/**
 * An opaque `cursor` query parameter that carries `schema`'s value from one page to the next. A cursor that `linkNext`
 * did not create is answered 400.
 */
export function cursorQuery<S extends z.ZodType>(schema: S) {
  return z
    .string()
    .max(2_048)
    .transform((text, context): z.output<S> => {
      const result = schema.safeParse(decode(text));
      if (result.success) return result.data;
      context.addIssue({ code: 'custom', message: 'is not a cursor of this list' });
      return z.NEVER;
    })
    .optional()
    .meta({
      description: 'Where the next page begins. Take it from the Link header; do not construct it.',
    });
}

/** Adds `Link: <…>; rel="next"` (RFC 8288): the same request from `cursor` on. */
export function linkNext(request: RequestInfo, cursor: unknown): void {
  const [path = '', search = ''] = request.url.split('?', 2);
  const query = new URLSearchParams(search);
  query.set('cursor', Buffer.from(JSON.stringify(cursor)).toString('base64url'));
  request.setHeader('Link', `<${path}?${query.toString()}>; rel="next"`);
}

function decode(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString('utf8')) as unknown;
  } catch {
    return undefined;
  }
}
