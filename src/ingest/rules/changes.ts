import type { Configuration } from '../../contract/configuration.ts';
import type { AlarmSignal } from '../../contract/alarm-signal.ts';
import type { NewEvent } from '../../contract/event.ts';
import type { Rejection } from '../../contract/rejection.ts';
import type { DeviceIdentity, Downlink, TimeRequest } from '../../contract/uplink.ts';
import type { MeasurementRow } from './measurement-row.ts';
import type { Message } from './message.ts';
import type { PlannedOutcome } from './outcome.ts';
import type { Remarked, SenseClock } from './sense-clock.ts';

export type { MeasurementRow } from './measurement-row.ts';

/** `messageId` and `item` make a retried transaction store it once; `payload` is empty but for a message's first. */
export type RejectionRow = Rejection & {
  deviceId: number;
  messageId: string;
  item: number;
  ts: number;
  topic: string;
  payload: string;
};

export type ProfileAnswerRow = {
  deviceId: number;
  pId: string;
  state: 'current' | 'rejected';
  engine: 'service' | 'device' | undefined;
  text: string | undefined;
  ts: number;
};

/** What is kept of a sense's clock, or of what the device was told of it (`ofDevice`). */
export type ClockRow = { deviceId: number; sId: string; state: SenseClock | Remarked };

/** What happens after the commit and is no row: a message for the device, or a profile to hand over. */
type Effect =
  | { kind: 'down'; uuid: string; message: Downlink }
  | { kind: 'hand-over'; device: DeviceIdentity }
  /** It asked what time it is, which is looked at when it is told. */
  | { kind: 'time'; uuid: string; request: TimeRequest };

/** What one transaction writes, and what follows it. */
export type Changes = {
  measurements: MeasurementRow[];
  events: NewEvent[];
  signals: AlarmSignal[];
  rejections: RejectionRow[];
  /** Those of them that count the further ones of a minute, by device and minute. */
  minutes: Map<string, RejectionRow>;
  /** How many rejections of these messages are stored one by one once it is committed. */
  rejectionsStored: Map<Message, number>;
  /** Messages whose whole payload is stored with one of these rejections. */
  payloadsStored: Set<Message>;
  profiles: ProfileAnswerRow[];
  configurations: { deviceId: number; configuration: Configuration }[];
  /** By device and sense. */
  clocks: Map<string, ClockRow>;
  effects: Effect[];
  /** What becomes of the items of messages whose senders ask. */
  outcomes: Map<Message, PlannedOutcome>;
};

export function noChanges(): Changes {
  return {
    measurements: [],
    events: [],
    signals: [],
    rejections: [],
    minutes: new Map(),
    rejectionsStored: new Map(),
    payloadsStored: new Set(),
    profiles: [],
    configurations: [],
    clocks: new Map(),
    effects: [],
    outcomes: new Map(),
  };
}
