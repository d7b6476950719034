import { z } from 'zod';
import { AlarmState, AlarmView } from '../contract/alarm.ts';
import { Text } from '../contract/text.ts';
import { labelQuery } from '../http/list-query.ts';
import { cursorQuery } from '../http/page.ts';
import { exampleIds, limitQuery, timestamp } from '../http/schema.ts';

/** Where a page ends: the next begins with older alarms than this one. */
const AlarmCursor = z.object({ id: z.int().min(0) });

export const AlarmQuery = z.object({
  state: AlarmState.optional().meta({ description: 'Only alarms in this state.' }),
  device: z.guid().toLowerCase().optional().meta({ description: 'Only of this `deviceAuthUuid`.' }),
  label: labelQuery,
  limit: limitQuery(100, 10),
  cursor: cursorQuery(AlarmCursor),
});
export type AlarmQuery = z.output<typeof AlarmQuery>;

const Delivery = z
  .object({
    kind: z.enum(['push', 'sms', 'email', 'webhook']),
    recipient: z
      .string()
      .meta({ description: 'As in the notifications of a device: never whole.' }),
    type: z.string().meta({ description: 'opened, repeated, escalated or closed.' }),
    state: z.enum(['planned', 'queued', 'sent', 'logged', 'failed', 'held-back']),
    changedTs: timestamp,
    dueTs: timestamp
      .optional()
      .meta({ description: 'Of a planned one (`afterMs`): when it is due.' }),
    reason: z.string().optional(),
  })
  .meta({ id: 'Delivery' });
export type AlarmDelivery = z.infer<typeof Delivery>;

export const ListedAlarm = AlarmView.safeExtend({
  deliveries: z.array(Delivery).meta({
    description: 'Newest first; the newest 50. Kept as long as notifications are.',
  }),
}).meta({ id: 'Alarm' });
export type ListedAlarm = z.infer<typeof ListedAlarm>;

export const AlarmList = z.object({ alarms: z.array(ListedAlarm), timestamp });
export const AlarmAnswer = z.object({ alarm: ListedAlarm, timestamp });

/** The alarm in a path; what is no number of one is answered 404. */
export const AlarmParams = z.object({
  alarmId: z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .meta({
      override: ({ jsonSchema }: { jsonSchema: object }) => {
        for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key);
        Object.assign(jsonSchema, { type: 'integer', minimum: 0, example: exampleIds.alarm });
      },
    }),
});

/** Five years: who wants quiet for longer changes the purpose. */
const longestMs = 5 * 366 * 86_400_000;

/** Until when nobody is told, and why. */
export const QuietBody = z
  .object({
    untilTs: z.int().meta({
      description: 'Milliseconds since the Unix epoch; in the future, by five years at most.',
      example: 1893456000000,
    }),
    reason: Text.max(200).optional(),
  })
  .meta({ id: 'QuietUntil' });
export type QuietBody = z.infer<typeof QuietBody>;

/** Whether the time is one that a quiet can end at. */
export const isAhead = (untilTs: number, nowTs: number): boolean =>
  untilTs > nowTs && untilTs <= nowTs + longestMs;

/** For the reference: until 2030. */
export const exampleQuiet: QuietBody = { untilTs: 1893456000000, reason: 'being repaired' };
