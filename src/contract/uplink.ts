import { z } from 'zod';
import type { CommandAnswer } from './command.ts';
import type { Configuration } from './configuration.ts';
import { Position, Text, textOr } from './values.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Milliseconds since the Unix epoch. */
export const SentTs = z.int().min(0).meta({ description: 'Milliseconds since the Unix epoch.' });

/** One measurement as a device sends it. The time of arrival replaces an absent `ts`. */
export const SentMeasurement = z.object({
  sId: textOr('expected a sense, as in {"sId": "0x10", "val": 21.5}'),
  val: z.union([z.number(), Position], {
    error: 'expected a finite number or a position {lat, long} in degrees',
  }),
  ts: SentTs.optional(),
});
export type SentMeasurement = z.infer<typeof SentMeasurement>;

/** A device's report of the current state of its own engine. */
export const StateReport = z.object({
  puId: z.int32(),
  stId: z.int32(),
  evId: z.int32().optional(),
  ts: SentTs.optional(),
});
export type StateReport = z.infer<typeof StateReport>;

/** A `sense` event found by the device's own engine. */
export const EventReport = z.object({
  cause: z.object({
    engine: z.object({
      pId: Text,
      puId: z.int32(),
      stId: z.int32(),
      evId: z.int32(),
      ts: SentTs,
    }),
    senses: z.array(
      z.object({
        sId: Text,
        val: z.number(),
        ts: SentTs,
        lat: Position.shape.lat.optional(),
        long: Position.shape.long.optional(),
      }),
    ),
  }),
  timestamp: SentTs.optional(),
});
export type EventReport = z.infer<typeof EventReport>;

/** A device's answer to a profile. */
export const ProfileAnswer = z.object({
  pId: Text,
  state: z.enum(['current', 'rejected']),
  engine: z.enum(['service', 'device']).optional(),
  text: Text.optional(),
});
export type ProfileAnswer = z.infer<typeof ProfileAnswer>;

/** A message on `up/profile`: the device's answer, or a request for the profile that waits for it. */
export const ProfileMessage = z.discriminatedUnion(
  'state',
  [ProfileAnswer, z.object({ state: z.literal('request') })],
  { error: 'expected state to be "current", "rejected" or "request"' },
);
export type ProfileMessage = z.infer<typeof ProfileMessage>;

/**
 * A device without a clock asks for the time. The answer returns `echo`, so that the device knows which request it
 * answers.
 */
export const TimeRequest = z.object({ echo: z.union([z.number(), z.string().max(64)]).optional() });
export type TimeRequest = z.infer<typeof TimeRequest>;

/** Measurements or events in one message. */
export const maxItems = 1_000;

/**
 * `index` is the item's place in the array that was sent; null for a single item. `isStamped`: it was sent without a
 * time, and got that of its arrival.
 */
export type Item<T> = { index: number | null; value: T; isStamped?: true };

/** The parsed content of a payload. Invalid items are omitted and listed as rejections. */
export type UplinkContent =
  | { kind: 'measurements'; items: Item<SentMeasurement>[] }
  | { kind: 'state'; report: StateReport }
  | { kind: 'events'; items: Item<EventReport>[] }
  | { kind: 'profile-answer'; answer: ProfileAnswer }
  | { kind: 'profile-request' }
  | { kind: 'configuration'; configuration: Configuration }
  | { kind: 'time'; request: TimeRequest }
  | { kind: 'command-answer'; answer: CommandAnswer }
  | { kind: 'none' };

/** A parsed message of a device on its way to `ingest`, without any protocol library's types. */
export type Uplink = {
  /** As it was published, for rejections. */
  topic: string;
  /** The first 1 KiB of the payload as text, for rejections; may be computed on demand. */
  readonly excerpt: string;
  /** The whole payload as text, for what the database refuses; computed on demand. Absent: the excerpt is all. */
  readonly payload?: string;
  arrivedTs: WallMs;
  content: UplinkContent;
  /** Its account sends too many events and cannot be slowed down, so none of its events is recorded. */
  leavesEventsOut?: true;
  /** Some of its rejections; the last one may count the others. */
  rejections: Rejection[];
  /** The cost of parsing it, in multiples of what ingest spends on an ordinary measurement; absent: none. */
  readonly parsingCost?: number;
};

/**
 * What happened to a message's items. `repeated`: they were stored before, or change nothing. `rejected`: the first
 * rejections, and one that counts the others (`more`).
 */
export type Outcome = { stored: number; repeated: number; rejected: Rejection[] };

/** Learns, once, what happened to a message. */
export type Delivery = {
  /** Whether the message need not be stored any more. Read for as long as no transaction contains the message. */
  readonly isWithdrawn: boolean;
  /** The outcome of each item, before `stored`. Absent: items are not counted, which saves the cost. */
  settled?(outcome: Outcome): void;
  /** The message is committed. */
  stored(): void;
  /** The message will not be stored: `device-gone`, or `unavailable` if it was withdrawn or the service stops. */
  failed(error: unknown): void;
};

/** Tells when to stop taking messages of an account's devices. */
export type AccountThrottle = {
  /** For how many ms to wait; 0: not at all. Called for every message, so it must not query. */
  waitMs(accountId: number): number;
  /** A message of the device waits because of that. Called for each message. */
  waits(device: DeviceIdentity, topic: string): void;
  /** Whether the account waits for storage to become free, which may take days. Absent: it never does. */
  isFull?(accountId: number): boolean;
};

/** A device whose credentials were verified. */
export type DeviceIdentity = {
  deviceId: number;
  uuid: string;
  accountId: number;
  /** The connector where it was last seen, or else its assigned one; absent where it is not needed. */
  connectorId?: number;
};

/**
 * A message to a device. An acknowledgement marks the profile `pId` as received, the text `keptId` as no longer needed,
 * or the command as sent. Of two texts of a device, the newer one has the higher `keptId`.
 */
export type Downlink = {
  topic: DownTopic;
  payload: unknown;
  pId?: string;
  keptId?: number;
  command?: HandedCommand;
};

/**
 * A command that is being handed over. It must not be sent at or after `expiresTs`, ms. `answerMs`: how long the next
 * one waits for the answer to this one.
 */
export type HandedCommand = { id: number; expiresTs: number; answerMs: number };

/**
 * How a device asks for what is due. `subscribed`: for all of it, whatever it had before. `again`: over HTTP, where it
 * has what it acknowledged. `due`: it is connected, and something may have become due.
 */
export type AskedHow = 'subscribed' | 'again' | 'due';

/** Topics whose messages are read from the database when they fall due, not only when the device subscribes. */
export const dueTopics = ['profile', 'configuration', 'display', 'command'] as const;
export type DueTopic = (typeof dueTopics)[number];

/**
 * Something from a device that is recorded but not accepted as what it claims to be. `reason` is a stable word for
 * programs, `message` a sentence for people, `path` a JSON Pointer into the payload. `more`: the entry counts this many
 * further ones, of the same message or of the same device and minute. `details`: the values in `message`, for
 * translations.
 */
export type Rejection = {
  reason: RejectionReason;
  message: string;
  path?: string;
  more?: number;
  details?: RejectionDetails;
};

/** Times in ms. `min` and `max` are the limits at the time of the rejection. */
export type RejectionDetails = {
  sId?: string;
  val?: number;
  min?: number;
  max?: number;
  ts?: number;
  /** How far a time may be ahead of its arrival, or behind it. */
  maxAheadMs?: number;
  maxAgeMs?: number;
};

export type RejectionReason =
  | 'invalid-json'
  | 'invalid-payload'
  | 'unknown-topic'
  | 'foreign-topic'
  | 'unknown-sense'
  | 'out-of-range'
  | 'future-timestamp'
  | 'expired-timestamp'
  | 'unknown-state'
  | 'unknown-profile'
  | 'unknown-command'
  | 'unknown-member'
  | 'too-many-connects'
  | 'too-many-connections'
  | 'session-taken-over'
  | 'message-not-acknowledged'
  | 'packet-too-large'
  | 'quota-exceeded'
  | 'unstorable'
  | 'events-not-recorded'
  | 'more-of-message'
  | 'more-of-minute';

/** Counts the problems of a message beyond those that are recorded individually. */
export function countedOnly(more: number): Rejection {
  const message = `And ${more} more in this message.`;
  return { reason: 'more-of-message', message, more };
}

/** Counts a device's rejections of one minute beyond those that are recorded individually. */
export function furtherOfMinute(more: number): Rejection {
  return {
    reason: 'more-of-minute',
    message: 'Further rejections in this minute are only counted.',
    more,
  };
}

/** What a device may publish, below `devices/{uuid}/up/`. */
export const upTopics = [
  'measurements',
  'state',
  'events',
  'profile',
  'configuration',
  'time',
  'command',
] as const;
export type UpTopic = (typeof upTopics)[number];
/** To look one up: a topic below a device's `upPrefix` that is not in it is unknown. */
export const upTopicNames: ReadonlySet<string> = new Set(upTopics);

/** What a device receives, below `devices/{uuid}/down/`. */
export const downTopics = [
  'profile',
  'configuration',
  'state',
  'display',
  'errors',
  'time',
  'token',
  'command',
] as const;
export type DownTopic = (typeof downTopics)[number];

/**
 * The topics of a wildcard subscription. A new token is a credential, and a device that does not know that topic might
 * log it where others can read it. So `token` is sent only to devices that subscribe to it by name.
 */
export const unnamedDownTopics: readonly DownTopic[] = downTopics.filter(
  (topic) => topic !== 'token',
);

export const upPrefix = (uuid: string) => `devices/${uuid}/up/`;
export const downPrefix = (uuid: string) => `devices/${uuid}/down/`;

const uuidAt = 'devices/'.length;

/**
 * Whether a topic or filter begins with a device's `upPrefix` or `downPrefix`. Its uuid may be in upper case, as some
 * platforms write it: case does not matter on input, RFC 9562 section 4.
 */
export function isBelow(topic: string, prefix: string): boolean {
  if (topic.startsWith(prefix)) return true;
  const uuidEnd = prefix.indexOf('/', uuidAt);
  return (
    topic.startsWith(prefix.slice(0, uuidAt)) &&
    topic.startsWith(prefix.slice(uuidEnd), uuidEnd) &&
    topic.slice(uuidAt, uuidEnd).toLowerCase() === prefix.slice(uuidAt, uuidEnd)
  );
}

/** The device of a topic below `devices/{uuid}/up/`, in lower case; null for any other topic. */
export function findPublisher(topic: string): string | null {
  const [root, uuid, direction, ...rest] = topic.split('/', 4);
  return root === 'devices' && uuid && direction === 'up' && rest.length > 0
    ? uuid.toLowerCase()
    : null;
}

/**
 * The downlink topics that match a filter below the device's own `down/`; null for a filter that reaches further (`#`,
 * `+/…`, `$SYS/…`, `$share/…`, another device's). MQTT 3.1.1 section 4.7.1.
 */
export function findMatchedTopics(filter: string, prefix: string): DownTopic[] | null {
  if (!isBelow(filter, prefix)) return null;
  const [first, second, ...rest] = filter.slice(prefix.length).split('/', 3);
  if (first === '#') return [...unnamedDownTopics];
  // "profile/#" also matches its parent "profile"; there is nothing deeper.
  if (rest.length > 0 || (second !== undefined && second !== '#')) return [];
  return first === '+' ? [...unnamedDownTopics] : downTopics.filter((topic) => first === topic);
}
