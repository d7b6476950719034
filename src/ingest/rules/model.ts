import type { CommandProgress } from '../../contract/command.ts';
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
import type { CowArray, Listening, Newest } from '../../engine/last-seen.ts';
import type { Runtime } from '../../engine/runtime.ts';
import type { Remarked, Watermark } from './watermark.ts';
import type { Arrival } from './arrival.ts';
import type { LateHour, PlacedInput } from './device-input.ts';
import type { WallMs } from '../../lib/clock-readings.ts';

/** A message on its way to the database, and where to report the result. */
export type Message = {
  readonly uplink: Uplink;
  readonly delivery: Delivery;
  /** Identifies the message among rejections. It is made when needed, and kept, so that a retry adds no second one. */
  id: string | undefined;
  readonly newUuid: () => string;
  /** How many of its rejections are committed individually. */
  rejectionsStored: number;
  /** Whether a committed rejection holds its whole payload. */
  isPayloadStored: boolean;
  /** How many of its sense events are committed or being committed. */
  recorded: number;
  /** How many of its fragments are not stored yet. -Infinity: it has failed. */
  open: number;
  /** The outcome of the committed fragments; null: nobody asks. */
  outcome: Outcome | null;
};

/** What a fragment contains: what a device sent, or a tick. */
export type FragmentContent = UplinkContent | { kind: 'tick' };

/** The part of a message that is stored or fails together. It is the whole message until a failed batch is split. */
export type Fragment = {
  message: Message;
  content: FragmentContent;
  /** How many items it adds to a batch; at least one. */
  size: number;
  rejections: Rejection[];
  /** The database refused it, and only its rejection is stored. */
  isRefused?: true;
};

/** `messageId` and `item` make a retried transaction store it once. `payload` is empty except in a message's first. */
export type RejectionRow = Rejection & {
  deviceId: number;
  messageId: string;
  item: number;
  ts: number;
  topic: string;
  payload: string;
};

type ProfileAnswerRow = {
  deviceId: number;
  pId: string;
  state: 'current' | 'rejected';
  engine: 'service' | 'device' | undefined;
  text: string | undefined;
  ts: number;
};

/** A text for the device's display, kept for when it reconnects. `message`: what to send if it is connected. */
type DisplayRow = {
  deviceId: number;
  puId: number;
  stId: number;
  text: string;
  ts: number;
  message: Downlink;
};

/** A sense's watermark, or under `ofDevice` what the device was told about its clock. */
export type ClockRow = { deviceId: number; sId: string; state: Watermark | Remarked };

/** What happens after the commit without a row: a message to the device, or a profile to hand over. */
type Effect =
  | { kind: 'down'; uuid: string; message: Downlink }
  /** The device answered a command. `isNextDue`: it no longer waits, so that another one may be due. */
  | { kind: 'command'; device: DeviceIdentity; commandId: string; isNextDue: boolean }
  | { kind: 'hand-over'; device: DeviceIdentity }
  /** The device asked for the time, which is read when the answer is sent. */
  | { kind: 'time'; uuid: string; request: TimeRequest };

/** What one transaction writes, and what follows it. */
export type Changes = {
  measurements: MeasurementRow[];
  events: NewEvent[];
  signals: AlarmSignal[];
  rejections: RejectionRow[];
  /** Those of the rejections that count further ones, by device and minute. */
  minutes: Map<string, RejectionRow>;
  /** For each message, how many rejections are stored individually after the commit. */
  rejectionsStored: Map<Message, number>;
  /** Messages whose whole payload is stored with one of these rejections. */
  payloadsStored: Set<Message>;
  profiles: ProfileAnswerRow[];
  configurations: { deviceId: number; configuration: Configuration }[];
  /** By device and sense. */
  clocks: Map<string, ClockRow>;
  /** What else devices were given, in order. */
  inputs: PlacedInput[];
  /** By device and hour. */
  lateHours: Map<string, LateHour & { deviceId: number }>;
  /** The newest text of each state, by device and state; the newest comes last. */
  displays: Map<string, DisplayRow>;
  effects: Effect[];
  /** Those that devices answer, by `commandKey`. */
  commands: AnsweredCommands;
  /** What becomes of the items of messages whose senders ask. */
  outcomes: Map<Message, PlannedOutcome>;
};

/** A command as it was read, and as it is after its device's answers: the same object if they change nothing. */
type AnsweredCommand = {
  deviceId: number;
  id: number;
  /** Of its row, as it was read. */
  version: number;
  before: CommandProgress;
  after: CommandProgress;
};

/** By `commandKey`. Commands that the device does not have are missing. */
export type AnsweredCommands = Map<string, AnsweredCommand>;

export const commandKey = (deviceId: number, commandId: string) => `${deviceId} ${commandId}`;

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
    inputs: [],
    lateHours: new Map(),
    displays: new Map(),
    effects: [],
    commands: new Map(),
    outcomes: new Map(),
  };
}

/**
 * How long one transaction may keep the event loop busy without a pause. The unit is what an ordinary measurement costs
 * to plan and write, about a microsecond. Costs are counted, not timed: with a clock, batches would become small just
 * when the machine is busy.
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

/** What else costs, in the same unit. */
export const costs = {
  /** Comparing a measurement with a cause's limits (`CompiledCause`). */
  cause: 1 / 60,
  /** Encoding what a cause has collected, and each outcome in its window. */
  evidence: 1 / 16,
  outcome: 1 / 1_000,
  /** A firing that is recorded, notifies people or shows a text, and each of its causes. */
  firing: 5,
  firingCause: 3,
  /** A firing for which alarms are decided: rows of alarms, and of messages to people. */
  alarm: 60,
  /** An input that is kept (`noteInput`). */
  input: 5,
  /** A text that is kept for a display: the newest of its state in a transaction. */
  display: 10,
  /** An item that is rejected, and reported to the device. */
  rejection: 5,
  /** A rejection that is only counted costs as much as a good item. */
  counted: 1,
  /** An answer to a command, which is read and written. */
  command: 10,
  /** Reading a device, with its configuration, evidence and newest measurements, from the database. */
  reading: 40,
};

/** At least this many accounts get a turn in one transaction, if that many wait. */
export const turnsPerBatch = 50;

/**
 * What a device's messages cost at most before any firing, in ordinary measurements (`Budget`): each measurement, and
 * once for reading the device or writing its evidence.
 */
export type DeviceCost = { perItem: number; once: number };

const plain: DeviceCost = { perItem: 1, once: 0 };
/** The device was not read yet, so the cost of its profile is unknown. */
export const unreadCost: DeviceCost = { perItem: 1, once: costs.reading };

export function costOf(deviceState: DeviceState | null): DeviceCost {
  if (!deviceState) return unreadCost;
  const { current, runtime } = deviceState;
  if (current?.engine !== 'service' || !runtime) return plain;
  const weight = findWeight(current.profile, runtime);
  if (!weight) return plain;
  return { perItem: 1 + weight.judging * costs.cause, once: evidenceCostOf(weight) };
}

/** What writing or reading the evidence of a device in this state costs at most. */
export function evidenceCost(profile: Profile, place: Place): number {
  const weight = findWeight(profile, place);
  return weight ? evidenceCostOf(weight) : 0;
}

/** How many bytes that evidence takes at most while it is remembered; measured. */
export function evidenceBytes(profile: Profile, place: Place): number {
  const weight = findWeight(profile, place);
  return weight ? weight.causes * 200 + weight.outcomes / 3 : 0;
}

/** How long that evidence can become as stored, in characters; a little more than it usually is. */
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

/** When a tick of this runtime would be due if its connector always listened, ms; null: nothing waits. */
export type EarliestDue = {
  purposes: Profile['purposes'];
  runtime: Runtime;
  ts: number | null;
};

/**
 * How a device's evidence is stored: the whole of it as of some version of the device's row, and the measurements
 * evaluated since (`evidence_log`). Evaluating these on top of the whole gives the current evidence.
 */
export type EvidenceLog = {
  /** The version with which the whole was written; null if the whole is written next. */
  base: number | null;
  /** The number of characters added to it. */
  added: number;
  /** The measurements evaluated since this version of the row, encoded. They are stored with the row's next version. */
  version: number;
  pending: string[];
  /** The evidence that results from all of it. If the device has other evidence, this log is not its log. */
  runtime: Runtime;
  /** Whether the device may have rows in `evidence_log`. */
  hasRows: boolean;
  /** Whether the evidence may become so long that writing the whole each time would cost more. */
  isLong: boolean;
};

/**
 * Everything that the evaluation of a device's messages depends on, as of `version` of its row. Immutable: a message
 * results in a new one, which replaces it when the transaction is being committed.
 */
export type DeviceState = {
  device: DeviceIdentity;
  version: number;
  senses: ReadonlyMap<string, Sense>;
  /** Of its last message or tick; null: none is known. */
  arrival: Arrival | null;
  place: Place;
  /** When the device came to its place, ms. */
  placeTs: number;
  reported: Reported | null;
  answersProfiles: boolean;
  current: RunningProfile | null;
  /** A profile that was or will be handed over, and is not answered yet. */
  pending: Profile | null;
  /** When `pending` was installed, ms; null without one. */
  pendingTs: number | null;
  runtime: Runtime | null;
  /** How its evidence is stored, if that is long; null: always as a whole. */
  evidenceLog: EvidenceLog | null;
  /** When it is due to be evaluated without a message, as in its row of `device_due`; null: it has no row. */
  dueTs: number | null;
  /** When a tick of `runtime` is due at the earliest, if that is known. */
  earliestDue: EarliestDue | null;
  /** The senses that one of its profiles reads, each with its number. `seen`: the newest value by that number. */
  watched: ReadonlyMap<string, number>;
  seen: CowArray<Newest>;
  /** By sense, the watermark, if the history's newest value does not say everything; null: none. */
  clocks: ReadonlyMap<string, Watermark> | null;
  remarked: Remarked | null;
  /**
   * What its configuration and profiles were when it was read, and whether that is noted (`noteGiven`). `isKept`: its
   * inputs are, because it has or had a profile.
   */
  given: { basis: string; isNoted: boolean; isKept: boolean };
  /** The last hour in which something came late; null if this process has seen none. */
  lateHour: LateHour | null;
  /** The senses of alarms that wait for a fresh measurement before people are notified, and maybe more; null: none. */
  waitingSenses: ReadonlySet<string> | null;
  /** Its rejections in the last minute that had any; null if this process has seen none. */
  recentRejections: RecentRejections | null;
};

/** A measurement as the table stores it: a position has its latitude in `val`. */
export type MeasurementRow = {
  deviceId: number;
  sId: string;
  ts: number;
  val: number;
  long: number | undefined;
  /** When its message counts as arrived, and its place there (`takePlace`); absent: imported. */
  arrival?: Arrival;
  nth?: number | null;
};

/** Shared by the many lists that stay empty; never pushed to. */
const none: never[] = [];

/** What becomes of a message's items in one transaction. Only the insert shows what is new. */
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

  /** A single item changed something. */
  store(): void {
    this.stored += 1;
  }

  /** A single item changed nothing: it, or something newer, was known already. */
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

/** The planned outcome of this message in the transaction being planned. */
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

/** Adds the first `max` individually, and counts the others in one more. */
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

/**
 * How many of a device's rejections in one minute are kept individually, as far as this process knows. It is one more
 * than `keptPerMinute` once the device was told that further ones are only counted.
 */
export type RecentRejections = { minute: number; kept: number };

/** How many rejections of one device and minute are kept individually; further ones are counted. */
export const keptPerMinute = 60;

const minuteMs = 60_000;

/** The count for the minute of a message. */
export function recentRejectionsAt(
  recent: RecentRejections | null,
  arrivedTs: WallMs,
): RecentRejections {
  const minute = Math.floor(arrivedTs / minuteMs);
  return recent?.minute === minute ? recent : { minute, kept: 0 };
}

/** Identifies the row that counts a device's further rejections in a minute; the same in every process. */
export function minuteId(minute: number): string {
  return `00000000-0000-8000-8000-${minute.toString(16).padStart(12, '0')}`;
}

/**
 * Limits of the rules. `maxAheadMs`: how far a device's time may be ahead, ms. `ringMaxAgeMs`: up to what age an event
 * is notified by push and SMS, ms.
 */
export type ApplyLimits = {
  maxAheadMs: number;
  /** The service's time now. Absent: its clock is never set back. */
  nowTs?: (() => WallMs) | undefined;
  /** While the service's clock is in doubt: where it should be minus where it is, ms (src/clock). Absent: 0. */
  doubtSpanMs?: (() => number) | undefined;
  /** Older measurements would be deleted from the history at once. */
  measurementMaxAgeMs: number;
  eventMaxAgeMs: number;
  ringMaxAgeMs: number;
  /** How much an account's devices may say about themselves; absent: no limit. */
  sizesOf?: (accountId: number) => Sizes;
  /** How many rejections of one message are kept individually. */
  rejectionsPerMessage: number;
  /** How many bytes a device's rejections may take; beyond it no payload is kept. */
  rejectionBytesPerDevice: number;
  /** When the device's connector did not listen; absent or undefined: it always did. Called often. */
  listeningOf?: (device: DeviceIdentity) => Listening | undefined;
};

/** What a rule sees of the message that it applies. `reject` records an item as rejected, with the reason. */
export type MessageScope = {
  topic: string;
  /** When the message counts as arrived (`nextArrival`), and the same with the places of its measurements. */
  arrivedTs: WallMs;
  arrival: Arrival;
  rows: Changes;
  limits: ApplyLimits;
  /** When it is spent, the rest of the message's items waits for another transaction. */
  budget: Budget;
  reject: (rejection: Rejection) => void;
  /** The device's measurements that are stored already. Null: none is, or the transaction fails. */
  stored: StoredAlready | null;
  /** Records what became of each item; null: nobody asks. */
  outcome: PlannedOutcome | null;
};

/**
 * The device's state after the applied items of a message, and how many were applied: 1 if the message has no items
 * (`Fragment.size`), 0 if nothing of it was applied yet.
 */
export type Applied = { deviceState: DeviceState; items: number };

/** Identifies a measurement among those of its device. */
export function nameOfStored({ sId, ts, val }: Measurement): string {
  // The history stores no negative zero.
  const place = typeof val === 'number' ? [val + 0] : [val.lat + 0, val.long + 0];
  return [sId, ts, ...place].join(' ');
}

/** Which of a device's measurements are in the history, or earlier in the plan. */
export class StoredAlready {
  readonly #names: Set<string>;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
  }

  /** Call it once for each measurement. */
  isAgain(name: string): boolean {
    if (this.#names.has(name)) return true;
    this.#names.add(name);
    return false;
  }
}
