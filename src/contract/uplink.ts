import { z } from 'zod';
import type { Configuration } from './configuration.ts';
import { Position } from './measurement.ts';
import type { Rejection } from './rejection.ts';
import { Text, textOr } from './text.ts';
import type { DownTopic } from './topic.ts';

export type { DownTopic } from './topic.ts';

/** Milliseconds since the Unix epoch. */
export const SentTs = z.int().min(0).meta({ description: 'Milliseconds since the Unix epoch.' });

/** One measurement as a device sends it; the time of arrival stands in for an absent `ts`. */
export const SentMeasurement = z.object({
  sId: textOr('expected a sense, as in {"sId": "0x10", "val": 21.5}'),
  val: z.union([z.number(), Position], {
    error: 'expected a finite number, or a position {lat, long} in degrees',
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
  arrivedTs: number;
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
