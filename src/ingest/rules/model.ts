import type { AlarmSignal } from '../../contract/alarm.ts';
import type { Configuration, Sense } from '../../contract/configuration.ts';
import type { NewEvent } from '../../contract/event.ts';
import type { Sizes } from '../../contract/purpose.ts';
import {
  countedOnly,
  type Delivery,
  type DeviceIdentity,
  type Downlink,
  type Outcome,
  type Rejection,
  type TimeRequest,
  type Uplink,
  type UplinkContent,
} from '../../contract/uplink.ts';
import type { Measurement, Place } from '../../contract/values.ts';
import type { Profile, Weight } from '../../engine/compile.ts';
import type { Listening, Newest } from '../../engine/last-seen.ts';
import type { Runtime } from '../../engine/runtime.ts';
import type { Remarked, Watermark } from './watermark.ts';
import type { WallMs } from '../../lib/clock-readings.ts';

/** A message on its way to the database, and whom to tell. */
export class Message {
  /** Names the message among rejections; made when it is needed, and kept, so that a retry adds none. */
  id: string | undefined = undefined;
  /** How many of its rejections are committed one by one. */
  rejectionsStored = 0;
  /** Whether a committed rejection has its whole payload. */
  isPayloadStored = false;
  /** How many of its sense events are committed, or being committed. */
  recorded = 0;
  /** How many of its fragments are not stored yet. */
  open = 1;
  /** Of the fragments that are committed; null: nobody asks. */
  outcome: Outcome | null;
  readonly uplink: Uplink;
  readonly delivery: Delivery;
  readonly newUuid: () => string;

  constructor(uplink: Uplink, delivery: Delivery, newUuid: () => string) {
    this.uplink = uplink;
    this.delivery = delivery;
    this.outcome = delivery.settled ? { stored: 0, repeated: 0, rejected: [] } : null;
    this.newUuid = newUuid;
  }

  /** One of its fragments is committed; with the last one the message is acknowledged. */
  fragmentStored(): void {
    this.open -= 1;
    if (this.open !== 0) return;
    if (this.outcome) this.delivery.settled?.(this.outcome);
    this.delivery.stored();
  }

  /** One of its fragments will not be stored, and so the message is not. Told once. */
  fail(error: unknown): void {
    if (this.open <= 0) return;
    // What is left of it does not count any more.
    this.open = -Infinity;
    this.delivery.failed(error);
  }
}

/** What a fragment brings: what a device sent, or the time that came to it. */
export type FragmentContent = UplinkContent | { kind: 'tick' };

/** The part of a message that is stored or fails together: all of it, until a failed batch is split. */
export type Fragment = {
  message: Message;
  content: FragmentContent;
  /** Items that it brings into a batch: `sizeOf` its content. */
  size: number;
  rejections: Rejection[];
  /** The database refused it: its rejection is all that is kept of it. */
  isRefused?: true;
};

export function newFragment(
  message: Message,
  content: FragmentContent,
  rejections: Rejection[],
): Fragment {
  return { message, content, size: sizeOf(content), rejections };
}

/** How many items a fragment of this content brings into a batch. */
function sizeOf(content: FragmentContent): number {
  return 'items' in content ? Math.max(1, content.items.length) : 1;
}

/** A tick as what a message is made of: it has no topic and no payload. */
export function uplinkOfTick(arrivedTs: WallMs): Uplink {
  return { topic: '', excerpt: '', arrivedTs, content: { kind: 'none' }, rejections: [] };
}

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

/** A text for the device's display, for when it comes back. `message`: what it is sent if it is there. */
export type DisplayRow = {
  deviceId: number;
  puId: number;
  stId: number;
  text: string;
  ts: number;
  message: Downlink;
};

/** What is kept of a sense's clock, or of what the device was told of it (`ofDevice`). */
export type ClockRow = { deviceId: number; sId: string; state: Watermark | Remarked };

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
  /** The newest of each state, by device and state; the newer the later. */
  displays: Map<string, DisplayRow>;
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
    displays: new Map(),
    effects: [],
    outcomes: new Map(),
  };
}

/**
 * What one transaction may take of the event loop at a stretch, counted in what an ordinary measurement
 * takes: about a microsecond, to plan and to write it. Counted, not timed: a clock would make batches
 * small just when the machine is busy.
 */
export class Budget {
  spent = 0;
  limit: number;

  constructor(limit: number) {
    this.limit = limit;
  }

  get isSpent(): boolean {
    return this.spent >= this.limit;
  }
}

/** What else a message leads to, in the same measure. */
export const costs = {
  /** To compare a measurement with a cause's limits (`CompiledCause`). */
  cause: 1 / 60,
  /** To write down what a cause has collected, and so many outcomes of its window. */
  evidence: 1 / 16,
  outcome: 1 / 1_000,
  /** A firing that is recorded, notifies people or shows a text, and each of its causes. */
  firing: 5,
  firingCause: 3,
  /** One that alarms are to be decided on: rows of theirs, and of messages to people. */
  alarm: 60,
  /** A text that is kept for a display: the newest of its state in a transaction. */
  display: 10,
  /** An item that is rejected: it is told to the device as well. */
  rejection: 5,
  /** One that is counted only: like a good item. */
  counted: 1,
  /** To read a device, its configuration, evidence and newest measurements, from the database. */
  reading: 40,
};

/** Accounts that have their turn within one transaction, at least, where as many wait. */
export const turnsPerBatch = 50;

/**
 * What a device's messages take at most, in ordinary measurements (`Budget`), before any firing: each
 * measurement, and once, to read the device or to write down its evidence.
 */
export type DeviceCost = { perItem: number; once: number };

const plain: DeviceCost = { perItem: 1, once: 0 };
/** What its profile asks for is not known: the device was not read yet. */
export const unreadCost: DeviceCost = { perItem: 1, once: costs.reading };

export function costOf(deviceState: DeviceState | null): DeviceCost {
  if (!deviceState) return unreadCost;
  const { current, runtime } = deviceState;
  if (current?.engine !== 'service' || !runtime) return plain;
  const weight = findWeight(current.profile, runtime);
  if (!weight) return plain;
  return { perItem: 1 + weight.judging * costs.cause, once: evidenceCostOf(weight) };
}

/** What it takes at most to write down, or to read, the evidence of a device that stands there. */
export function evidenceCost(profile: Profile, place: Place): number {
  const weight = findWeight(profile, place);
  return weight ? evidenceCostOf(weight) : 0;
}

/** What that evidence takes at most while it is remembered, in bytes; measured. */
export function evidenceBytes(profile: Profile, place: Place): number {
  const weight = findWeight(profile, place);
  return weight ? weight.causes * 200 + weight.outcomes / 3 : 0;
}

/** How long that evidence can become as it is stored, in characters; a little more than it mostly is. */
export function evidenceLength(profile: Profile, place: Place): number {
  const weight = findWeight(profile, place);
  return weight ? weight.causes * 8 + weight.outcomes / 6 : 0;
}

function evidenceCostOf({ causes, outcomes }: Weight): number {
  return causes * costs.evidence + outcomes * costs.outcome;
}

function findWeight(profile: Profile, { puId, stId }: Place): Weight | undefined {
  const purpose = profile.purposes.get(puId);
  return purpose?.states.get(stId)?.weight ?? purpose?.globalWeight;
}

/** The newest state that the device itself reported since its profile became current. */
export type Reported = Place & { ts: number };

type RunningProfile = { profile: Profile; engine: 'service' | 'device' };

/** When a tick of this runtime is due at the earliest, ms, however its connector listens; null: nothing waits. */
export type EarliestDue = {
  purposes: Profile['purposes'];
  runtime: Runtime;
  ts: number | null;
};

/**
 * What is stored of a device's evidence: the whole of it as of some version of the device's row, and the
 * measurements that were evaluated since (`evidence_log`), which evaluated again give what there is now.
 */
export type EvidenceLog = {
  /** The version with which the whole was written; null where it is to be written next. */
  base: number | null;
  /** Characters of what was added to it. */
  added: number;
  /** What was evaluated since this version of the row, encoded; is stored with the row's next one. */
  version: number;
  pending: string[];
  /** The evidence that all of it comes to: any other one is not of this log. */
  runtime: Runtime;
  /** Whether there may be rows of the device's. */
  hasRows: boolean;
  /** Whether the evidence may become so long that to write it each time costs more. */
  isLong: boolean;
};

/**
 * All that the evaluation of a device's message depends on, as of `version` of its row. Immutable:
 * a message gives a new one, which takes the place of the old when its transaction is being committed.
 */
export type DeviceState = {
  device: DeviceIdentity;
  version: number;
  senses: ReadonlyMap<string, Sense>;
  place: Place;
  /** When the device came to its place, ms. */
  placeTs: number;
  reported: Reported | null;
  answersProfiles: boolean;
  current: RunningProfile | null;
  /** Handed over, or to be, and not answered yet. */
  pending: Profile | null;
  /** When that was installed, ms; null where there is none. */
  pendingTs: number | null;
  runtime: Runtime | null;
  /** How its evidence is stored, where that is long; null: always as a whole. */
  evidenceLog: EvidenceLog | null;
  /** When it is due to be evaluated without a message, as its row in `device_due` says; null: it has none. */
  dueTs: number | null;
  /** When a tick of `runtime` is due at the earliest, where that was looked at. */
  earliestDue: EarliestDue | null;
  /** The senses that one of its profiles reads, numbered, and by number the newest of each: its clock. */
  watched: ReadonlyMap<string, number>;
  seen: CowArray<Newest>;
  /** By sense, where the history's newest is not all there is to know of its clock; null: of none. */
  clocks: ReadonlyMap<string, Watermark> | null;
  remarked: Remarked | null;
  /** Senses of alarms that are told with the next fresh measurement: these, and maybe more; null: none. */
  waitingSenses: ReadonlySet<string> | null;
  /** Its rejections of the last minute that had any; null where this process has seen none. */
  recentRejections: RecentRejections | null;
};

/** A measurement as the table keeps it: a position has its latitude in `val`. */
export type MeasurementRow = {
  deviceId: number;
  sId: string;
  ts: number;
  val: number;
  long: number | undefined;
};

/** Of most lists there is no element: never pushed to. */
const none: never[] = [];

/**
 * What becomes of those of a message's items that one transaction holds. Of measurements and events only the
 * insert tells whether they are new.
 */
class PlannedOutcome {
  stored = 0;
  repeated = 0;
  rejected: Rejection[] = none;
  measurements: MeasurementRow[] = none;
  events: NewEvent[] = none;
  readonly maxRejections: number;

  constructor(maxRejections: number) {
    this.maxRejections = maxRejections;
  }

  /** A single item changes something. */
  store(): void {
    this.stored += 1;
  }

  /** A single item changes nothing: it came before, or something newer did. */
  repeat(): void {
    this.repeated += 1;
  }

  measure(row: MeasurementRow): void {
    if (this.measurements.length === 0) this.measurements = [row];
    else this.measurements.push(row);
  }

  report(event: NewEvent): void {
    if (this.events.length === 0) this.events = [event];
    else this.events.push(event);
  }

  reject(rejection: Rejection): void {
    if (this.rejected === none) this.rejected = [];
    addRejection(this.rejected, rejection, this.maxRejections);
  }
}

/** The one of this message in the transaction that is being planned. */
export function plannedOutcomeOf(
  message: Message,
  { outcomes }: { outcomes: Map<Message, PlannedOutcome> },
  { rejectionsPerMessage }: { rejectionsPerMessage: number },
): PlannedOutcome {
  const known = outcomes.get(message);
  if (known) return known;
  const planned = new PlannedOutcome(rejectionsPerMessage);
  outcomes.set(message, planned);
  return planned;
}

/** The first `max` one by one; one more counts the others. */
export function addRejection(rejected: Rejection[], rejection: Rejection, max: number): void {
  if (rejection.more === undefined && rejected.length < max) {
    rejected.push(rejection);
    return;
  }
  const more = rejection.more ?? 1;
  const last = rejected.at(-1);
  if (last?.more === undefined) rejected.push(countedOnly(more));
  else rejected[rejected.length - 1] = countedOnly(last.more + more);
}

/** Few enough that copying them costs little, and enough that most lists are one page. */
const perPage = 32;

/**
 * A list that never changes. One that differs in an element shares all but a page with it, so that a
 * device which measures with a thousand senses does not copy what it knows of all of them each time.
 */
export class CowArray<T> {
  readonly #pages: readonly (readonly (T | undefined)[])[];

  private constructor(pages: readonly (readonly (T | undefined)[])[]) {
    this.#pages = pages;
  }

  static of<T>(elements: readonly (T | undefined)[]): CowArray<T> {
    const count = Math.ceil(elements.length / perPage);
    return new CowArray(
      Array.from({ length: count }, (_, page) =>
        elements.slice(page * perPage, (page + 1) * perPage),
      ),
    );
  }

  get(index: number): T | undefined {
    return this.#pages[Math.floor(index / perPage)]?.[index % perPage];
  }

  /** `index` must be within the list. */
  with(index: number, element: T): CowArray<T> {
    const page = Math.floor(index / perPage);
    const changed = (this.#pages[page] ?? []).slice();
    changed[index % perPage] = element;
    const pages = this.#pages.slice();
    pages[page] = changed;
    return new CowArray(pages);
  }
}

/**
 * How many of a device's rejections of one minute are kept one by one, as far as this process knows:
 * one more than `keptPerMinute` once the device was told that further ones are counted only.
 */
export type RecentRejections = { minute: number; kept: number };

/** Rejections of one device and minute that are kept one by one; further ones are a number. */
export const keptPerMinute = 60;

const minuteMs = 60_000;

/** What the minute of a message has so far. */
export function recentRejectionsAt(
  recent: RecentRejections | null,
  arrivedTs: WallMs,
): RecentRejections {
  const minute = Math.floor(arrivedTs / minuteMs);
  return recent?.minute === minute ? recent : { minute, kept: 0 };
}

/** Names the row that counts a device's further rejections of a minute: the same one in every process. */
export function minuteId(minute: number): string {
  return `00000000-0000-8000-8000-${minute.toString(16).padStart(12, '0')}`;
}

/** How far a device's time may be off, in milliseconds, and up to what age an event is notified by push and SMS. */
export type ApplyLimits = {
  maxAheadMs: number;
  /** Where the clock should be less where it is, while it is in doubt, ms (src/clock). Absent: 0. */
  doubtSpanMs?: (() => number) | undefined;
  /** What is older than the history keeps would be gone at once. */
  measurementMaxAgeMs: number;
  eventMaxAgeMs: number;
  ringMaxAgeMs: number;
  /** How much an account's devices may say of themselves; absent: anything. */
  sizesOf?: (accountId: number) => Sizes;
  /** Rejections of one message that are kept one by one. */
  rejectionsPerMessage: number;
  /** What a device's rejections may take: no payload is kept beyond that. */
  rejectionBytesPerDevice: number;
  /** When the device's connector did not listen; absent, or undefined: it always did. Asked often. */
  listeningOf?: (device: DeviceIdentity) => Listening | undefined;
};

/** What a rule sees of the message it applies. `reject` keeps an item and says why. */
export type MessageScope = {
  topic: string;
  arrivedTs: WallMs;
  rows: Changes;
  limits: ApplyLimits;
  /** Where it is spent, what is left of the message's items waits for another transaction. */
  budget: Budget;
  reject: (rejection: Rejection) => void;
  /** Null: of the device's measurements nothing is stored already, or the transaction fails. */
  stored: StoredAlready | null;
  /** Told of each item; null: nobody asks. */
  outcome: PlannedOutcome | null;
};

/**
 * The device after those items of a message that were applied, and how many; 1 where it has none (`sizeOf`), 0 where
 * nothing of the message was looked at yet.
 */
export type Applied = { deviceState: DeviceState; items: number };

/** What tells a device's measurements apart. */
export function nameOfStored({ sId, ts, val }: Measurement): string {
  // Zero has no sign in the history.
  const place = typeof val === 'number' ? [val + 0] : [val.lat + 0, val.long + 0];
  return [sId, ts, ...place].join(' ');
}

/** Which of a device's measurements the history has, and those that the plan has taken in before. */
export class StoredAlready {
  readonly #names: Set<string>;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
  }

  /** To be asked once of each measurement. */
  isAgain(name: string): boolean {
    if (this.#names.has(name)) return true;
    this.#names.add(name);
    return false;
  }
}
