import type { SenseEvent } from './event.ts';

/** Which announcement of an alarm a message belongs to; a notice has no alarm. */
export type Announced = {
  type: 'opened' | 'repeated' | 'notice';
  /** Null of a notice. */
  alarmId: number | null;
  announcement: number;
  /** Since when the alarm is open. */
  sinceTs: number;
  /** When its sense was last heard, of a repeat. */
  lastHeardTs?: number | undefined;
};

type Asked = {
  accountId: number;
  deviceId: number;
  deviceUuid: string;
  event: SenseEvent;
  /** The event's; empty where it has none. */
  name: string;
  /** Absent: it is a notice. */
  about?: Announced;
};

/** A push or SMS that an event asks for. A push goes to every token the account has at that moment. */
export type NewNotification = Asked &
  ({ kind: 'push' } | { kind: 'sms'; phoneNumber: string; text: string });
