import type { Configuration } from './configuration.ts';
import type { Position } from './measurement.ts';
import type { Rejection } from './rejection.ts';

/** One measurement as a device sends it; the time of arrival stands in for an absent `ts`. */
export type SentMeasurement = { sId: string; val: number | Position; ts?: number };

/** A device's report of where its own engine stands. */
export type StateReport = { puId: number; stId: number; evId?: number; ts?: number };

/** A `sense` event found by the device's own engine. */
export type EventReport = {
  cause: {
    engine: { pId: string; puId: number; stId: number; evId: number; ts: number };
    senses: { sId: string; val: number; ts: number; lat?: number; long?: number }[];
  };
};

/** A device's answer to a profile it was handed. */
export type ProfileAnswer = {
  pId: string;
  state: 'current' | 'rejected';
  engine?: 'service' | 'device';
  text?: string;
};

/** `index` is the item's place in the array that was sent, or null where a single one was sent. */
export type Item<T> = { index: number | null; value: T };

/** What a payload turned out to be. Items that are wrong are left out here and listed as rejections. */
export type UplinkContent =
  | { kind: 'measurements'; items: Item<SentMeasurement>[] }
  | { kind: 'state'; report: StateReport }
  | { kind: 'events'; items: Item<EventReport>[] }
  | { kind: 'profile-answer'; answer: ProfileAnswer }
  | { kind: 'profile-request' }
  | { kind: 'configuration'; configuration: Configuration }
  | { kind: 'none' };

/** A message of a device, parsed, on its way to `ingest`. Free of any protocol library's types. */
export type Uplink = {
  /** As it was published, for rejections. */
  topic: string;
  /** First 1 KiB of the payload as text, for rejections. */
  excerpt: string;
  arrivedTs: number;
  content: UplinkContent;
  rejections: Rejection[];
};

/** A device whose credentials were checked. */
export type DeviceIdentity = { deviceId: number; uuid: string; accountId: number };

/** The topics below `devices/{uuid}/down/`. */
export type DownTopic = 'profile' | 'configuration' | 'state' | 'display' | 'errors';

/** A message towards a device. `pId` names the profile that an acknowledgement settles. */
export type Downlink = { topic: DownTopic; payload: unknown; pId?: string };
