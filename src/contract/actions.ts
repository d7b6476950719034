import { z } from 'zod';
import type { NotNotified, SenseEvent } from './event.ts';
import type { DeviceIdentity, Downlink } from './uplink.ts';
import { duration, integer32, normalizePhoneNumber, oneMinute, Text } from './values.ts';

/** A firing whose actions are carried out. `name` is the event's name in its purpose; empty if it has none. */
type Fired = { device: DeviceIdentity; event: SenseEvent; name: string };

/**
 * One kind of action. `A` has the members of `actions` that belong to it. `reaches` determines when it is carried out
 * and how its results are created:
 * - `history`: with every firing; the event is recorded.
 * - `people`: once for an alarm's episode and with every firing of a notice, unless it is backlog; created lazily,
 *   because there may be many.
 * - `device`: with every firing, after the commit.
 * - `engine`: with every firing; the evaluator moves the device.
 * - `alarms`: with every firing; opens an alarm or continues it.
 */
export type Action<A> = {
  name: string;
  /** Whether an event with these actions asks for it. */
  isAsked(actions: A): boolean;
} & (
  | { reaches: 'history' | 'engine' | 'alarms' }
  | { reaches: 'people'; notifications(actions: A, fired: Fired): Iterable<NewNotification> }
  | { reaches: 'device'; message(actions: A, fired: Fired): Downlink }
);

/** Stored without separators. Anything that is not a phone number stays unchanged, and causes a warning. */
const PhoneNumber = Text.min(1)
  .max(32)
  .overwrite((text) => normalizePhoneNumber(text) ?? text);

/**
 * How people are notified. Each channel is a file of notifications/channels/; the compiler demands it for each name.
 */
export const ChannelName = z.enum(['push', 'sms', 'email', 'webhook']);
export type ChannelName = z.infer<typeof ChannelName>;

/**
 * The channels that send an action's text to its telephone numbers, and what people call one such message. The member
 * of `actions` has the name of the channel.
 */
const phoneActions = { sms: 'SMS' } as const satisfies Partial<Record<ChannelName, string>>;
export type PhoneChannel = keyof typeof phoneActions;

const phoneMembers = {
  text: Text.optional(),
  phoneNumber: z.array(PhoneNumber).max(10).default([]),
};

type PhoneMessage = { text?: string | undefined; phoneNumber: string[] };
type PhoneActions = Partial<Record<PhoneChannel, PhoneMessage | undefined>>;

const phoneChannels = Object.keys(phoneActions) as PhoneChannel[];

/** One message for each number; none without a text. */
const callNumbers = (channel: PhoneChannel): Action<PhoneActions> => ({
  name: channel,
  reaches: 'people',
  isAsked: (actions) => (actions[channel]?.phoneNumber.length ?? 0) > 0,
  *notifications(actions, { device, event, name }) {
    const { text, phoneNumber = [] } = actions[channel] ?? {};
    if (!text) return;
    const { accountId, deviceId, uuid: deviceUuid } = device;
    const asked = { accountId, deviceId, deviceUuid, event, name, kind: channel, text };
    for (const number of new Set(phoneNumber)) yield { ...asked, phoneNumber: number };
  },
});

/** What an event sends to telephone numbers, one entry for each channel; text and numbers may be missing. */
export function listPhoneMessages(
  actions: PhoneActions,
): (PhoneMessage & { channel: PhoneChannel; called: string })[] {
  return phoneChannels.flatMap((channel) => {
    const message = actions[channel];
    return message ? [{ ...message, channel, called: phoneActions[channel] }] : [];
  });
}

const recordMembers = {
  sendEvent: z.boolean().default(false),
  sendLog: z.boolean().default(false),
};

/** Records the firing as an event, like the event's own `eventLog`. */
const record: Action<{ cloud?: { sendEvent: boolean; sendLog: boolean } | undefined }> = {
  name: 'record',
  reaches: 'history',
  isAsked: ({ cloud }) => cloud?.sendEvent === true || cloud?.sendLog === true,
};

const pushMembers = { sendPush: z.boolean().default(false) };

/**
 * Tells the account's own recipients: its push tokens and its contacts, mail and webhooks among them. The recipients
 * are those that the account has when the message is queued.
 */
const push: Action<{ cloud?: { sendPush: boolean } | undefined }> = {
  name: 'push',
  reaches: 'people',
  isAsked: ({ cloud }) => cloud?.sendPush === true,
  notifications: (_, { device, event, name }) => {
    const { accountId, deviceId, uuid: deviceUuid } = device;
    return [{ accountId, deviceId, deviceUuid, event, kind: 'push', name }];
  },
};

const moveMembers = { gotoStId: integer32.optional(), gotoPuId: integer32.optional() };

/** Moves the device to another state, of this or another purpose; `targetOf` in the engine decides which. */
const move: Action<{
  engine?: { gotoStId?: number | undefined; gotoPuId?: number | undefined } | undefined;
}> = {
  name: 'move',
  reaches: 'engine',
  isAsked: ({ engine }) => engine?.gotoStId !== undefined || engine?.gotoPuId !== undefined,
};

const showTextMembers = { showText: Text.optional() };

/** Makes the device show a text. */
const showText: Action<{ display?: { showText?: string | undefined } | undefined }> = {
  name: 'show-text',
  reaches: 'device',
  isAsked: ({ display }) => display?.showText !== undefined,
  message: ({ display }, { event }) => ({
    topic: 'display',
    payload: { text: display?.showText ?? '', ts: event.ts },
  }),
};

const sevenDays = { ms: 7 * 24 * 60 * 60_000, words: '7 days' };

/** How bad it is, the least first. */
export const Severity = z.enum(['info', 'warning', 'critical']).meta({ id: 'Severity' });
export type Severity = z.infer<typeof Severity>;

/** Whether one is at least as bad as the other. */
export const isAtLeast = (one: Severity, other: Severity): boolean =>
  Severity.options.indexOf(one) >= Severity.options.indexOf(other);

export const severityOf = ({
  severity = 'warning',
}: {
  severity?: Severity | undefined;
}): Severity => severity;

/**
 * `alarm`: whether firings are kept as an alarm; if absent, whether they notify people decides that. `keepMs`: how much
 * longer the alarm stays open. `repeatMs`: how long after the last notification people are notified again.
 */
const alarmMembers = {
  alarm: z.boolean().optional().meta({
    description: 'True: firings are kept as an alarm. False: people are notified of each one.',
  }),
  severity: Severity.optional().meta({ description: 'How bad an alarm is; `warning` if absent.' }),
  keepMs: duration({ ms: 0, words: '0 s' }, sevenDays).optional().meta({
    description: 'How much longer the alarm stays open after its condition ends, in ms.',
  }),
  repeatMs: duration(oneMinute).optional().meta({
    description: 'How long after the last notification people are notified again, in ms.',
  }),
};

/** Keeps a firing as an alarm even if nobody is notified of it. */
const alarm: Action<{ alarm?: boolean | undefined }> = {
  name: 'alarm',
  reaches: 'alarms',
  isAsked: (actions) => actions.alarm === true,
};

/** What a firing does besides being recorded by the event's own `eventLog`; specification section 2.5. */
export const Actions = z
  .object({
    sms: z.object(phoneMembers).meta({ id: 'SmsAction' }).optional(),
    cloud: z
      .object({ ...recordMembers, ...pushMembers })
      .meta({ id: 'CloudAction' })
      .optional(),
    engine: z.object(moveMembers).meta({ id: 'EngineAction' }).optional(),
    display: z.object(showTextMembers).meta({ id: 'DisplayAction' }).optional(),
    ...alarmMembers,
  })
  .meta({ id: 'Actions' });
export type Actions = z.infer<typeof Actions>;

type Kinds = readonly Action<Actions>[];

/** Every kind of action. To add one, define it and its members above, and list it here. */
const actionKinds: Kinds = [record, push, ...phoneChannels.map(callNumbers), showText, move, alarm];

/** The kinds of action that an event with these actions asks for. */
export function listAsked(actions: Actions): Kinds {
  return actionKinds.filter((kind) => kind.isAsked(actions));
}

/** The messages to the device for a firing. */
export function messagesOf(actions: Actions, fired: Fired): Downlink[] {
  return listAsked(actions).flatMap((kind) =>
    kind.reaches === 'device' ? kind.message(actions, fired) : [],
  );
}

/** The notifications that a firing asks for, created one by one. Whether they are sent, the alarm's rules decide. */
export function* notificationsAsked(actions: Actions, fired: Fired): Iterable<NewNotification> {
  for (const kind of listAsked(actions))
    if (kind.reaches === 'people') yield* kind.notifications(actions, fired);
}

/** Whether a firing of the event moves the device, or would if its profile had the target. */
export function asksForMove({ engine }: Actions): boolean {
  return engine?.gotoStId !== undefined || engine?.gotoPuId !== undefined;
}

/** The announcement of an alarm that a message belongs to. A notice has no alarm. */
export type Announced = {
  type: 'opened' | 'repeated' | 'notice';
  /** Null for a notice. */
  alarmId: number | null;
  announcement: number;
  severity: Severity;
  /** Since when the alarm holds. */
  sinceTs: number;
  /** For a repeat: when its sense was last heard. */
  lastHeardTs?: number | undefined;
};

/** How many messages a request to notify people made, for now and for later. If both are 0, `notNotified` says why. */
export type NotifyResult = { queued: number; planned: number; notNotified: NotNotified | null };

type Asked = {
  accountId: number;
  deviceId: number;
  deviceUuid: string;
  event: SenseEvent;
  /** The event's name; empty if it has none. */
  name: string;
  /** Absent: it is a notice. */
  about?: Announced;
};

/**
 * What an event asks for. A `push` goes to all push tokens and contacts that the account has at that moment. Any other
 * kind goes to one telephone number.
 */
export type NewNotification = Asked &
  ({ kind: 'push' } | { kind: PhoneChannel; phoneNumber: string; text: string });
