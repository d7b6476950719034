import { z } from 'zod';
import { presences } from '../contract/presence.ts';
import { labelQuery } from '../http/list-query.ts';
import { cursorQuery } from '../http/page.ts';
import { cursorText, flagQuery, optionalLimitQuery, stateQuery } from '../http/schema.ts';

const sortKeys = ['name', 'lastSeenTs', 'registeredTs'] as const;

const Sort = z
  .enum([...sortKeys, ...sortKeys.map((key) => `-${key}` as const)])
  .transform((text) => ({
    key: text.replace('-', '') as (typeof sortKeys)[number],
    isDescending: text.startsWith('-'),
  }))
  .meta({ description: '`registeredTs` if absent; with `-` before it descending.' });

/** Where a page ends: the sort key as text, and the device. */
const FleetCursor = z.tuple([cursorText, z.int().min(1)]);

/** What else GET /v2/devices is asked for. Without any of it the answer is that of the specification. */
export const FleetQuery = z.object({
  search: z.string().min(1).max(200).optional().meta({
    description: 'A part of the name or of the serial number, or how the uuid begins.',
  }),
  label: labelQuery,
  online: flagQuery(
    'Only those that are connected, or those that are not; `presence` tells three kinds apart.',
  ),
  presence: z
    .enum(presences)
    .optional()
    .meta({
      description:
        'online: connected, or a request of it waits for messages. offline: it speaks MQTT and is not connected. ' +
        'intermittent: it sends over HTTP, or through a bridge, so that nobody can tell.',
    }),
  alarm: z.literal('open').optional().meta({
    description: 'Only devices with an alarm that is not closed, acknowledged ones too.',
  }),
  refused: flagQuery(
    'Only those whose newest login was refused, or those of which this is not so: see refusedTs.',
  ),
  muted: flagQuery('Only those that are muted now, or those that are not.'),
  state: stateQuery.optional().meta({
    description: 'Only where the purpose engine is there: puId:stId',
  }),
  profile: z.enum(['pending', 'current', 'none']).optional().meta({
    description: 'pending: one waits for an answer; current: one runs; none: neither.',
  }),
  sort: Sort.optional(),
  counts: flagQuery(
    'Adds how many devices there are, whatever the filters, and how many match these.',
  ),
  // Its default would make a page of what was asked for without any parameter.
  limit: optionalLimitQuery(1_000, 'At most 1000; 100 if absent.'),
  cursor: cursorQuery(FleetCursor),
});
export type FleetQuery = z.output<typeof FleetQuery>;

/** Which devices an action is for: the filters of the list, in JSON. */
export const DeviceFilter = z
  .strictObject(FleetQuery.omit({ limit: true, cursor: true, sort: true, counts: true }).shape)
  .extend({
    online: z.boolean().optional(),
    refused: z.boolean().optional(),
    muted: z.boolean().optional(),
  })
  .meta({
    id: 'DeviceFilter',
    description: 'As the list of devices has them; empty: all devices.',
  });
export type DeviceFilter = z.output<typeof DeviceFilter>;
