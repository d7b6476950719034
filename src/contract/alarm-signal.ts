import type { Actions } from './actions.ts';
import type { EventName, SenseEvent } from './event.ts';
import type { Place } from './place.ts';
import type { DeviceIdentity } from './uplink.ts';

/**
 * An event that concerns people fired. `event` is the object that is recorded: `notified` and `notNotified`
 * are set on it before that.
 */
export type FiredSignal = {
  kind: 'fired';
  of: EventName;
  pId: string;
  event: SenseEvent;
  /** Of an event that the device reported: what a redelivery of it is recognised by. */
  reportKey?: string;
  /** Of the event, the state that holds it and the purpose; empty where they have none. */
  name: string;
  stateName: string;
  purposeName: string;
  actions: Actions;
  tells: 'notice' | 'alarm' | 'silent-alarm';
  /** The first of its episode; always, of a reported one. */
  isFirst: boolean;
  /** Not too old to tell people of it: `ingest.ringMaxAgeMs`. */
  isFresh: boolean;
  /** Its state is global: the episode lasts until the purpose is left. */
  isGlobal: boolean;
  /** It becomes a row of the account's events. */
  isRecorded: boolean;
  /** What the causes of the event read. */
  sIds: string[];
  /** Where the device stood before. */
  from: Place;
  /**
   * Where the same measurement or tick moved it, by this event or a later one; the state it was in, where it
   * entered that anew. Of a reported event: where the event leads.
   */
  movedTo: Place | null;
};

type MovedSignal = {
  kind: 'moved';
  from: Place;
  /** Another state. */
  to: Place;
  /** The device itself said so. */
  isReport: boolean;
};

/** What alarms are told of a device, in the order in which it happened, within the transaction that stores it. */
export type AlarmSignal = { device: DeviceIdentity; arrivedTs: number } & (
  | FiredSignal
  /** Episodes that a disagreeing cause ended. */
  | { kind: 'ended'; of: EventName[] }
  | MovedSignal
  /** Fresh measurements of senses that an alarm of the device waits for. */
  | { kind: 'heard'; sIds: string[] }
  /** Another profile became current, the current one was rejected, or another engine evaluates it from here on. */
  | { kind: 'profile' }
  /** The senses that the device has now. */
  | { kind: 'configuration'; sIds: string[] }
);
