import { z } from 'zod';
import { type Actions, Severity } from './actions.ts';
import { type EventName, NotNotified, type SenseEvent } from './event.ts';
import type { DeviceIdentity } from './uplink.ts';
import type { Place } from './values.ts';
import type { WallMs } from '../lib/clock-readings.ts';

const ts = z.int().meta({ description: 'Milliseconds since the Unix epoch.' });

export const AlarmState = z.enum(['open', 'acknowledged', 'closed']).meta({
  id: 'AlarmState',
  description: 'Always one of the three. A snoozed alarm is `open`.',
});
export type AlarmState = z.infer<typeof AlarmState>;

/** Why an alarm closed. */
export const Closing = z
  .enum(['cleared', 'left-state', 'profile', 'configuration', 'expired', 'person'])
  .meta({
    id: 'AlarmClosing',
    description:
      'cleared: a cause no longer agreed. left-state: the device left the state that the alarm ' +
      'depends on. profile: another profile or another engine. configuration: a sense of its ' +
      'event was removed. expired: the device did not report it again. person: somebody closed ' +
      'it.',
  });
export type Closing = z.infer<typeof Closing>;

/** Whether people were notified of an alarm. */
export const AlarmTold = z.enum(['none', 'queued', 'told', 'withdrawn']).meta({
  id: 'AlarmTold',
  description:
    'queued: messages are on their way. told: at least one was delivered. withdrawn: taken ' +
    'back because none could be delivered, or because of a snooze; people will be notified ' +
    'again.',
});
export type AlarmTold = z.infer<typeof AlarmTold>;

export const AlarmValue = z
  .object({
    sId: z.string(),
    val: z.number(),
    ts,
    lat: z.number().optional(),
    long: z.number().optional(),
  })
  .meta({ id: 'AlarmValue' });
export type AlarmValue = z.infer<typeof AlarmValue>;

/** What somebody wrote about an alarm. */
export const AlarmNote = z
  .object({
    ts,
    by: z.string().meta({ description: 'The session that wrote it.' }),
    on: z.enum(['acknowledge', 'close']),
    text: z.string(),
  })
  .meta({ id: 'AlarmNote' });
export type AlarmNote = z.infer<typeof AlarmNote>;

/** The condition of one cause, as it was when an alarm opened. */
export const AlarmCondition = z
  .object({
    sId: z.string(),
    name: z
      .string()
      .nullable()
      .meta({ description: "The sense's name in the device's configuration." }),
    unit: z.string().nullable(),
    threshold: z.record(z.string(), z.unknown()).meta({
      description: 'As in the purpose: `count`, `forMs` and so on. Empty if it had none.',
    }),
    thresholds: z.record(z.string(), z.unknown()).meta({
      description: 'As in the purpose, without lists of more than 16 numbers or points.',
    }),
  })
  .meta({ id: 'AlarmCondition' });
export type AlarmCondition = z.infer<typeof AlarmCondition>;

/** The first condition that compares a value with one limit. `isMax`: greater values are worse. Null: there is none. */
export function limitOf(
  conditions: readonly AlarmCondition[],
): { sId: string; unit: string | null; limit: number; isMax: boolean } | null {
  for (const { sId, unit, threshold, thresholds } of conditions) {
    const { isGt, isLt } = thresholds;
    const [limit, ...others] = [isGt, isLt].filter((one) => typeof one === 'number');
    if (limit === undefined || others.length > 0) continue;
    if (threshold['relative'] === true || threshold['over'] !== undefined) continue;
    const isMax = (typeof isGt === 'number') !== (threshold['negate'] === true);
    return { sId, unit, limit, isMax };
  }
  return null;
}

const Quiet = z
  .object({
    untilTs: ts,
    reason: z.string().nullable(),
    by: z.string().meta({ description: 'The session that requested it.' }),
  })
  .meta({ id: 'Quiet' });

/** An alarm as it is listed and streamed. */
export const AlarmView = z
  .object({
    alarmId: z.int(),
    deviceAuthUuid: z.guid(),
    deviceName: z.string(),
    pId: z.string().meta({ description: 'The profile that the event belongs to.' }),
    puId: z.int(),
    purposeName: z.string(),
    stId: z.int(),
    stateName: z.string(),
    evId: z.int(),
    eventName: z.string(),
    state: AlarmState,
    severity: Severity.meta({ description: '`actions.severity` of its newest firing.' }),
    sinceTs: ts.meta({ description: 'Time of the first firing, ms.' }),
    lastFiringTs: ts.meta({ description: 'Time of the newest firing, ms.' }),
    beganTs: ts.nullable().meta({
      description:
        'The first measurement of what it fired for, ms; for a silence, since when nothing was heard. null: not recorded.',
    }),
    beganArrivedTs: ts.nullable().meta({ description: 'When that measurement arrived, ms.' }),
    overTs: ts.nullable().meta({
      description:
        'The measurement that ended it, ms. null while its condition holds, if something else closed it, or if not recorded. It lasted `overTs` - `beganTs`.',
    }),
    overArrivedTs: ts.nullable().meta({ description: 'When that measurement arrived, ms.' }),
    filledTs: ts.nullable().meta({
      description:
        'Of a silence: the first measurement found that came late and shows that there was none, ms. null: none is known.',
    }),
    firings: z.int(),
    values: z.array(AlarmValue).meta({
      description:
        'The newest value of each of its senses. On streams: the values of its newest firing.',
    }),
    told: AlarmTold,
    notNotified: NotNotified.nullable().meta({
      description:
        'Why the last notification attempt reached nobody; null if somebody was notified.',
    }),
    announcedTs: ts.nullable().meta({ description: 'Since when people count as notified, ms.' }),
    acknowledgedTs: ts.nullable(),
    acknowledgedBy: z.string().nullable().meta({ description: 'The session that did it.' }),
    snoozed: Quiet.nullable().meta({
      description: 'Its event is snoozed: this alarm and later ones.',
    }),
    muted: Quiet.nullable().meta({ description: 'Its device is muted: all events.' }),
    endsTs: ts.nullable().meta({
      description:
        'The condition no longer holds. The alarm closes at this time unless it fires again (`keepMs`).',
    }),
    closedTs: ts.nullable(),
    closedBy: Closing.nullable(),
  })
  .meta({ id: 'AlarmNow' });
export type AlarmView = z.infer<typeof AlarmView>;

/** What happened to an alarm. */
export const AlarmChangeKind = z
  .enum([
    'removed',
    'closed',
    'opened',
    'reopened',
    'acknowledged',
    'snoozed',
    'unsnoozed',
    'withdrawn',
    'told',
    'not-told',
    'ending',
    'fired',
  ])
  .meta({ id: 'AlarmChangeKind' });
export type AlarmChangeKind = z.infer<typeof AlarmChangeKind>;

/** A change of an alarm on event streams: the SSE event `alarm`. */
export const AlarmChange = z
  .object({
    timestamp: ts.meta({ description: "When it changed, by the service's clock, ms." }),
    change: AlarmChangeKind.meta({
      description:
        'One message for each alarm that a transaction changed, with the first of these that ' +
        'applies. removed: together with its device, or another alarm took it in. not-told: a notification was attempted ' +
        'outside a firing, and nobody was reached.',
    }),
    alarmId: z.int(),
    deviceAuthUuid: z.guid(),
    alarm: AlarmView.optional().meta({
      description: 'The alarm as it is now; absent if it was removed.',
    }),
  })
  .meta({ id: 'AlarmChange' });
export type AlarmChange = z.infer<typeof AlarmChange>;

/** A change as the stream's feed stores it. `body` is everything except its time (ms) and device. */
export type AlarmChangeRow = {
  type: 'alarm';
  ts: number;
  seq: number;
  body: object;
  deviceId: number;
  uuid: string;
};

/**
 * An event that concerns people fired. `event` is the object that will be recorded: `notified` and `notNotified` are
 * set on it before that.
 */
export type FiredSignal = {
  kind: 'fired';
  of: EventName;
  pId: string;
  event: SenseEvent;
  /** For a reported event: the key that a redelivery has too. */
  reportKey?: string;
  /** Names of the event, its state and its purpose; empty if they have none. */
  name: string;
  stateName: string;
  purposeName: string;
  actions: Actions;
  tells: 'notice' | 'alarm' | 'silent-alarm';
  /** The first firing of its episode. Always true for a reported event. */
  isFirst: boolean;
  /** The first measurement of what it fired for; null if that is not known. */
  began: AtMeasurement | null;
  /** Recent enough to notify people of it: `ingest.ringMaxAgeMs`. */
  isFresh: boolean;
  /** Its state is global: the episode lasts until the device leaves the purpose. */
  isGlobal: boolean;
  /** It is recorded in the account's events. */
  isRecorded: boolean;
  /** The senses that the event's causes read. */
  sIds: string[];
  /** Its causes' conditions. */
  conditions: AlarmCondition[];
  /** Where the device was before. */
  from: Place;
  /**
   * Where the same measurement or tick moved the device, by this event or a later one; its current state if it entered
   * that again. For a reported event: where the event leads.
   */
  movedTo: Place | null;
};

/** The time of a measurement or report, and when it arrived (null: not known); ms. */
export type AtMeasurement = { ts: number; arrivedTs: WallMs | null };

type MovedSignal = {
  kind: 'moved';
  /** The time of the measurement or report that moved it, ms. */
  ts: number;
  from: Place;
  /** Another state. */
  to: Place;
  /** The device itself reported it. */
  isReport: boolean;
};

/** What alarms learn of a device, in the order in which it happened, within the transaction that stores it. */
export type AlarmSignal = { device: DeviceIdentity; arrivedTs: WallMs } & (
  | FiredSignal
  /** Episodes that ended because a cause no longer agreed with the measurement of that `ts`. */
  | { kind: 'ended'; of: EventName[]; ts: number }
  | MovedSignal
  /** Recent measurements of senses that an alarm of the device waits for. */
  | { kind: 'heard'; sIds: string[] }
  /** Another profile became current, the current one was rejected, or from now on another engine evaluates it. */
  | { kind: 'profile' }
  /** The device's current senses. */
  | { kind: 'configuration'; sIds: string[] }
  /** Measurements came too late to be evaluated, or again: from the earliest to the latest `ts` of each sense. */
  | { kind: 'late'; senses: { sId: string; fromTs: number; toTs: number }[] }
);
