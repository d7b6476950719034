import { z } from 'zod';
import { devicesMembers, needDevices, rangeMembers } from '../exports/query.ts';
import { stateQuery, timestamp } from '../http/schema.ts';
import { EventView, eventFilters } from './schema.ts';

export const EventExportQuery = z
  .strictObject({
    ...devicesMembers,
    ...eventFilters,
    purpose: z
      .string()
      .regex(/^-?\d{1,10}$/, 'expected a puId, such as 1')
      .transform(Number)
      .optional()
      .meta({
        description: 'Only events that this purpose gave rise to, by its puId.',
        example: '1',
      }),
    state: stateQuery.optional().meta({
      description: 'Only events that this state of a purpose gave rise to: puId:stId.',
      example: '1:2',
    }),
    ...rangeMembers,
  })
  .superRefine(needDevices);
export type EventExportQuery = z.output<typeof EventExportQuery>;

export const EventExport = z.object({ events: z.array(EventView), timestamp });
