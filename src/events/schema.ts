import { z } from 'zod';
import type { AlarmChange, AlarmChangeRow } from '../contract/alarm.ts';
import { type EventMeaning as KeptMeaning, NotNotified } from '../contract/event.ts';
import { devicesMembers, needDevices, rangeMembers } from '../exports/exports.ts';
import {
  cursorQuery,
  cursorText,
  cursorTs,
  deviceUuid,
  limitQuery,
  timestamp,
  timestampQuery,
} from '../http/schema.ts';
import { eventFilterMembers, indexedFilterMembers } from './filter.ts';

const EngineCause = z
  .object({
    pId: z.string().meta({ description: 'Identifier of the profile; empty if there is none.' }),
    puId: z.int(),
    stId: z.int(),
    evId: z.int(),
    ts: timestamp,
  })
  .meta({ id: 'EngineCause' });

const CauseSense = z
  .object({
    sId: z.string(),
    val: z
      .number()
      .meta({ description: 'For a position: 1 (inside) or 0, with `lat` and `long`.' }),
    ts: timestamp,
    lat: z.number().optional(),
    long: z.number().optional(),
  })
  .meta({ id: 'CauseSense' });

const EventPlace = z
  .object({ purposeName: z.string(), stateName: z.string() })
  .meta({ id: 'EventPlace' });

/** Names and conditions of the event's profile, which stay when the profile changes. */
const EventMeaning = EventPlace.extend({
  eventName: z.string().meta({
    description: 'Empty if it has none, as of a move that no event caused.',
  }),
  conditions: z
    .array(
      z
        .object({
          sId: z.string(),
          group: z.int().optional().meta({
            description: 'With `anyOf`: the number of its group, from 0.',
          }),
          threshold: z.record(z.string(), z.unknown()),
          thresholds: z.record(z.string(), z.unknown()),
        })
        .meta({ id: 'EventCondition' }),
    )
    .optional()
    .meta({
      description:
        'What each cause required, as in the purpose, without lists of more than 16 numbers or points. ' +
        'Absent if that is longer than 4,000 characters.',
    }),
  to: EventPlace.optional().meta({ description: 'Where the event moves the device, if it does.' }),
}).meta({ id: 'EventMeaning' });

const common = {
  timestamp: timestamp.meta({ description: 'When it happened, in ms since the Unix epoch.' }),
  deviceAuthUuid: deviceUuid,
  eventId: z.string().meta({ description: 'The same wherever this event is read or streamed.' }),
  meaning: EventMeaning.optional().meta({
    description:
      'What `cause.engine` was called in its profile. Absent: not kept, as of events of earlier versions, and of ' +
      'events that a device reports of a profile that is not its current one.',
  }),
};

/** Specification section 6, kind `device`. */
const DeviceEventView = z
  .object({
    ...common,
    type: z.literal('device'),
    event: z.string().meta({ example: 'purposeChanged' }),
    cause: z.object({ engine: EngineCause }).meta({ id: 'DeviceEventCause' }),
    newValue: z.int(),
    oldValue: z.int(),
  })
  .meta({ id: 'DeviceEvent' });

/** Specification section 6, kind `sense`; `why`, `arrivedTs`, `notified` and `notNotified` are additions. */
const SenseEventView = z
  .object({
    ...common,
    type: z.literal('sense'),
    cause: z
      .object({ engine: EngineCause, senses: z.array(CauseSense) })
      .meta({ id: 'SenseEventCause' }),
    why: z
      .array(z.record(z.string(), z.unknown()))
      .optional()
      .meta({ description: 'Which condition of each cause was met, how often, and since when.' }),
    arrivedTs: timestamp
      .optional()
      .meta({ description: 'When the message that fired it arrived.' }),
    notified: z.boolean().optional(),
    notNotified: NotNotified.optional().meta({
      description: 'Why nobody was notified, if `notified` is false.',
    }),
  })
  .meta({ id: 'SenseEvent' });

export const EventView = z
  .discriminatedUnion('type', [DeviceEventView, SenseEventView])
  .meta({ id: 'Event' });
export type EventView = z.infer<typeof EventView>;

/** Where a page ends: the event's time in ms and its key. */
export const EventCursor = z.tuple([cursorTs, cursorText]);
export type EventCursor = z.infer<typeof EventCursor>;

/** Specification section 4.4. */
export const EventQuery = z.object({
  ...indexedFilterMembers,
  limit: limitQuery(10),
  start: timestampQuery.default(0),
  end: timestampQuery.optional(),
  cursor: cursorQuery(EventCursor),
});
export type EventQuery = z.output<typeof EventQuery>;

export const EventList = z.object({ events: z.array(EventView) });

/** Events of many devices. */
export const EventExportQuery = z
  .strictObject({
    ...devicesMembers,
    ...eventFilterMembers,
    ...rangeMembers,
  })
  .superRefine(needDevices);

export const EventExport = z.object({ events: z.array(EventView), timestamp });

/** The filters of a stream. */
export const StreamedEventsQuery = z.strictObject(eventFilterMembers);

/** A row of the events' tables. `body` holds everything but type and time. */
export type EventRow = {
  type: 'device' | 'sense';
  ts: number;
  seq: number;
  body: object;
  /** Absent: not kept. */
  meaning?: KeptMeaning;
};

/** A change of an alarm, as streams send it. */
export function toAlarmChange({ ts, body, uuid }: AlarmChangeRow): AlarmChange {
  // `saveAlarms` wrote the body from the type that the schema describes.
  return { timestamp: ts, deviceAuthUuid: uuid, ...body } as AlarmChange;
}

/** An event as clients see it; specification section 6. */
export function toEventView(row: EventRow, deviceAuthUuid: string): EventView {
  const { type, ts, seq, body, meaning } = row;
  // `recordEvents` wrote the body from the type that the view's schema describes.
  const event = { timestamp: ts, type, deviceAuthUuid, ...body, eventId: String(seq) } as EventView;
  return meaning ? { ...event, meaning } : event;
}
