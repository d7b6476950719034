import { z } from 'zod';
import type { Configuration } from './configuration.ts';
import { Position, Text, textOr } from './values.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Milliseconds since the Unix epoch. */
export const SentTs = z.int().min(0).meta({ description: 'Milliseconds since the Unix epoch.' });

/** One measurement as a device sends it; the time of arrival stands in for an absent `ts`. */
export const SentMeasurement = z.object({
  sId: textOr('expected a sense, as in {"sId": "0x10", "val": 21.5}'),
  val: z.union([z.number(), Position], {
    error: 'expected a finite number or a position {lat, long} in degrees',
  }),
  ts: SentTs.optional(),
});
export type SentMeasurement = z.infer<typeof SentMeasurement>;

/** A device's report of where its own engine stands. */
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

/** A device's answer to a profile it was handed. */
export const ProfileAnswer = z.object({
  pId: Text,
  state: z.enum(['current', 'rejected']),
  engine: z.enum(['service', 'device']).optional(),
  text: Text.optional(),
});
export type ProfileAnswer = z.infer<typeof ProfileAnswer>;

/** What a device publishes on `up/profile`: its answer, or the wish to be sent what waits for it. */
export const ProfileMessage = z.discriminatedUnion(
  'state',
  [ProfileAnswer, z.object({ state: z.literal('request') })],
  { error: 'expected state to be "current", "rejected" or "request"' },
);
export type ProfileMessage = z.infer<typeof ProfileMessage>;

/** A device without a clock asks what time it is; `echo` comes back, so that it knows which question was answered. */
export const TimeRequest = z.object({ echo: z.union([z.number(), z.string().max(64)]).optional() });
export type TimeRequest = z.infer<typeof TimeRequest>;

/** Measurements, or events, in one message. */
export const maxItems = 1_000;

/**
 * `index` is the item's place in the array that was sent, or null where a single one was sent. `isStamped`: it
 * came without a time, and has that of its arrival.
 */
export type Item<T> = { index: number | null; value: T; isStamped?: true };

/** What a payload turned out to be. Items that are wrong are left out here and listed as rejections. */
export type UplinkContent =
  | { kind: 'measurements'; items: Item<SentMeasurement>[] }
  | { kind: 'state'; report: StateReport }
  | { kind: 'events'; items: Item<EventReport>[] }
  | { kind: 'profile-answer'; answer: ProfileAnswer }
  | { kind: 'profile-request' }
  | { kind: 'configuration'; configuration: Configuration }
  | { kind: 'time'; request: TimeRequest }
  | { kind: 'none' };

/** A message of a device, parsed, on its way to `ingest`. Free of any protocol library's types. */
export type Uplink = {
  /** As it was published, for rejections. */
  topic: string;
  /** First 1 KiB of the payload as text, for rejections; may be made when it is asked for. */
  readonly excerpt: string;
  /** All of it as text, for what the database refuses; made when it is asked for. Absent: there is no more. */
  readonly payload?: string;
  arrivedTs: WallMs;
  content: UplinkContent;
  /** Its account brings too many events and cannot be made to wait: none of its events is recorded. */
  leavesEventsOut?: true;
  /** A few of those that it has; the last one may stand for the others. */
  rejections: Rejection[];
  /** What it took to parse, in what an ordinary measurement takes of ingest; absent: nothing. */
  readonly parsingCost?: number;
};

/**
 * What became of a message's items. `repeated`: they were stored before, or change nothing. Of `rejected` the
 * first ones, and one that counts the others (`more`).
 */
export type Outcome = { stored: number; repeated: number; rejected: Rejection[] };

/** Who is told, once, what became of a message. */
export type Delivery = {
  /** Asked as long as no transaction holds the message: whether it need not be stored any more. */
  readonly isWithdrawn: boolean;
  /** What became of each item, told before `stored`. Absent: nothing is counted, which costs nothing. */
  settled?(outcome: Outcome): void;
  /** It is committed. */
  stored(): void;
  /** It is not, nor will it be: `device-gone`, or `unavailable` where it was withdrawn or the service stops. */
  failed(error: unknown): void;
};

/** When no more messages of an account's devices are to be taken. */
export type AccountThrottle = {
  /** For how many ms; 0: now. Asked with every message: costs no query. */
  waitMs(accountId: number): number;
  /** A message of the device waits for that; told for each one. */
  waits(device: DeviceIdentity, topic: string): void;
  /** Whether the wait is for room in its storage, which may take days. Absent: it never is. */
  isFull?(accountId: number): boolean;
};

/** A device whose credentials were checked. */
export type DeviceIdentity = {
  deviceId: number;
  uuid: string;
  accountId: number;
  /** The connector that it was last seen at, or else was given; absent where nobody asks. */
  connectorId?: number;
};

/**
 * A message towards a device. An acknowledgement settles the profile that `pId` names, or ends the keeping of the
 * text that `keptId` does; of a device the newer text has the higher one.
 */
export type Downlink = { topic: DownTopic; payload: unknown; pId?: string; keptId?: number };

/** What is read from the database when it falls due, not only when the device subscribes. */
export type DueTopic = 'profile' | 'configuration' | 'display';

/**
 * Something a device sent that is kept but not taken for what it claims to be.
 * `reason` is a stable word for programs, `message` a sentence for people,
 * `path` a JSON Pointer into the payload. `more`: it stands for that many of the same message, or of the
 * device's same minute, that are counted only. `details`: the values that `message` names, for who says it
 * in another language.
 */
export type Rejection = {
  reason: RejectionReason;
  message: string;
  path?: string;
  more?: number;
  details?: RejectionDetails;
};

/** Times in ms. `min` and `max` are what was allowed when it was refused. */
export type RejectionDetails = {
  sId?: string;
  val?: number;
  min?: number;
  max?: number;
  ts?: number;
  /** The most that a time may be ahead of its arrival, or before it. */
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

/** Stands for what is wrong with a message beyond the rejections that are kept one by one. */
export function countedOnly(more: number): Rejection {
  const message = `And ${more} more in this message.`;
  return { reason: 'more-of-message', message, more };
}

/** Stands for what was wrong in one minute beyond the rejections of a device that are kept one by one. */
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
] as const;
export type UpTopic = (typeof upTopics)[number];

/** What a device is sent, below `devices/{uuid}/down/`. */
export const downTopics = [
  'profile',
  'configuration',
  'state',
  'display',
  'errors',
  'time',
  'token',
] as const;
export type DownTopic = (typeof downTopics)[number];

/**
 * What a device is sent that asks for everything. A new token is a credential, and a device that has never heard of it
 * may write it where others read it: it is sent to who names its topic.
 */
export const unnamedDownTopics: readonly DownTopic[] = downTopics.filter(
  (topic) => topic !== 'token',
);

export const upPrefix = (uuid: string) => `devices/${uuid}/up/`;
export const downPrefix = (uuid: string) => `devices/${uuid}/down/`;

const uuidAt = 'devices/'.length;

/**
 * Whether a topic or filter begins with a device's `upPrefix` or `downPrefix`. Its uuid may be written in capitals
 * there, as some platforms do: they are the same on input, RFC 9562 section 4.
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

/** The uplink topic that `topic` is for a device whose `upPrefix` is given; null below it but unknown. */
export function findUpTopic(topic: string, prefix: string): UpTopic | null {
  const name = topic.slice(prefix.length) as UpTopic;
  return upTopics.includes(name) ? name : null;
}

/** The device that a topic below `devices/{uuid}/up/` belongs to, in lower case; null for any other topic. */
export function findPublisher(topic: string): string | null {
  const [root, uuid, direction, ...rest] = topic.split('/', 4);
  return root === 'devices' && uuid && direction === 'up' && rest.length > 0
    ? uuid.toLowerCase()
    : null;
}

/**
 * The downlink topics that a filter below the device's own `down/` takes in; null for a filter that
 * reaches beyond it (`#`, `+/…`, `$SYS/…`, `$share/…`, another device's). MQTT 3.1.1 section 4.7.1.
 */
export function findMatchedTopics(filter: string, prefix: string): DownTopic[] | null {
  if (!isBelow(filter, prefix)) return null;
  const [first, second, ...rest] = filter.slice(prefix.length).split('/', 3);
  if (first === '#') return [...unnamedDownTopics];
  // "profile/#" takes in its parent "profile"; nothing lies deeper.
  if (rest.length > 0 || (second !== undefined && second !== '#')) return [];
  return first === '+' ? [...unnamedDownTopics] : downTopics.filter((topic) => first === topic);
}
