import type { SenseEvent } from './event.ts';

type Asked = { accountId: number; deviceId: number; deviceUuid: string; event: SenseEvent };

/**
 * A push or SMS that an event asks for. A push goes to every token the account has at that moment.
 * `name` is the event's, empty where it has none.
 */
export type NewNotification = Asked &
  ({ kind: 'push'; name: string } | { kind: 'sms'; phoneNumber: string; text: string });
