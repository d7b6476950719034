import { LRUCache } from 'lru-cache';
import type { z } from 'zod';
import {
  CommandAnswer,
  commandJson,
  commandJsonRule,
  maxAnswerText,
} from '../../src/contract/command.ts';
import { Configuration } from '../../src/contract/configuration.ts';
import {
  countedOnly,
  type Delivery,
  type DeviceIdentity,
  EventReport,
  type Item,
  maxItems,
  ProfileMessage,
  type Rejection,
  SentMeasurement,
  StateReport,
  TimeRequest,
  type Uplink,
  type UplinkContent,
  type UpTopic,
  upTopicNames,
  upTopics,
} from '../../src/contract/uplink.ts';
import { cutText } from '../../src/contract/purpose.ts';
import { warnOfUnknown } from '../../src/contract/warnings.ts';
import {
  findJsonError,
  jsonPointer,
  maxJsonParts,
  measureJson,
  tellJsonError,
} from '../../src/lib/json.ts';
import { decodeUtf8 } from '../../src/lib/utf8.ts';
import {
  checkInParts,
  describeIssue,
  hasUnknownMember,
  isLarge,
  isPrivateName,
  knownOf,
  type PartProblem,
} from '../../src/lib/schema.ts';
import type { MonotonicClock, WallMs } from '../../src/lib/clock-readings.ts';
import { atMost } from '../../src/lib/lru.ts';
import type { DevicePorts, Observer } from '../ports.ts';
import type { DeviceLimits, DeviceRates } from './limits.ts';

/** Whom a message is from. `rates`: null where the sender cannot be slowed down, so that nothing is charged. */
export type Sender = { identity: DeviceIdentity; upPrefix: string; rates: DeviceRates | null };

/** A message as it arrived. `topic` begins with its sender's `upPrefix`. */
export type RawMessage = {
  topic: string;
  payload: Buffer;
  arrivedTs: WallMs;
  /** Absent: JSON. */
  format?: PayloadFormat | undefined;
};

/** Who answers for the message. `accepts` is asked once it is parsed: false drops it, and the delivery has ended. */
export type Receipt = Delivery & { accepts(uplink: Uplink): boolean };

export type Receive = (sender: Sender, message: RawMessage, receipt: Receipt) => void;

type ReceiverDeps = {
  ports: Pick<DevicePorts, 'ingest'>;
  /** Null: nothing is charged. */
  deviceLimits: Pick<DeviceLimits, 'charge'> | null;
  rejectionsPerMessage: number;
  observe: Pick<Observer, 'messages'>;
  now: MonotonicClock;
};

/**
 * The way of a message over any transport: it is parsed, counted, charged to its sender, and given to ingest. What is
 * wrong in it costs as much as what is right, and an event as much as a measurement.
 */
export function createReceiver(deps: ReceiverDeps): Receive {
  const { ports, deviceLimits, rejectionsPerMessage, observe, now } = deps;
  const mayReportUnknown = createUnknownMemberThrottle(now);
  return function receive({ identity, upPrefix, rates }, message, receipt) {
    const { topic, payload, arrivedTs, format } = message;
    const mayTell = () => mayReportUnknown(identity.uuid);
    const uplink = parseUplink(
      topic,
      upPrefix,
      payload,
      arrivedTs,
      rejectionsPerMessage,
      mayTell,
      format,
    );
    const { kind } = uplink.content;
    observe.messages.set(kind, (observe.messages.get(kind) ?? 0) + 1);
    if (!receipt.accepts(uplink)) return;
    if (rates) deviceLimits?.charge(rates, { messages: 1, items: uplink.items }, now());
    ports.ingest(identity, uplink, receipt);
  };
}

const excerptBytes = 1_024;
/** How many characters of a topic are kept. */
export const maxTopicLength = 1_024;
/** Parsing this many bytes takes about as long as planning and writing an ordinary measurement. */
const bytesPerCost = 100;
/** A large payload counts as one measurement for this many bytes, however few items it has. */
const bytesCountedAsItem = 256;

/** The part of a faulty payload that is kept. PostgreSQL cannot store U+0000. */
export const excerptOf = (payload: Buffer): string =>
  payload.toString('utf8', 0, excerptBytes).replaceAll('\0', '\uFFFD');

/** Decodes the payload's text only when a rejection asks for it. */
class ParsedUplink implements Uplink {
  readonly topic: string;
  readonly arrivedTs: WallMs;
  readonly rejections: Rejection[] = [];
  content: UplinkContent = { kind: 'none' };
  items = 1;
  leavesEventsOut?: true;
  parsingCost = 0;
  readonly #payload: Buffer;

  constructor(topic: string, payload: Buffer, arrivedTs: WallMs) {
    this.topic = topic;
    this.arrivedTs = arrivedTs;
    this.#payload = payload;
  }

  get excerpt(): string {
    return excerptOf(this.#payload);
  }

  get payload(): string {
    return this.#payload.toString();
  }
}

/**
 * Whether a second copy of a message would be recognised and change nothing, so that the message may be stored without
 * telling the sender. That is so if each item carries its own time. An item without one gets the time of its arrival,
 * and its copy another.
 */
export function isRecognisedAgain(content: UplinkContent): boolean {
  switch (content.kind) {
    case 'measurements':
      return content.items.length > 0 && content.items.every(({ value }) => value.ts !== undefined);
    // The schema requires a time in each event.
    case 'events':
      return content.items.length > 0;
    case 'state':
      return content.report.ts !== undefined;
    default:
      return false;
  }
}

/** `items`: how many measurements it counts as: the items of a list, good and bad, or 1; more for a large payload. */
type Parsed = Uplink & { readonly items: number };

/**
 * Parses what a device published, item by item. Good items become content, bad ones rejections with their place in the
 * payload, the first `maxRejections` of them one by one. `prefix` is the device's `upPrefix`, with which `topic`
 * begins. `mayTell` is asked when a member has no effect: true adds a rejection for it.
 */
export function parseUplink(
  topic: string,
  prefix: string,
  payload: Buffer,
  arrivedTs: WallMs,
  maxRejections: number,
  mayTell?: MayTell,
  format: PayloadFormat = 'json',
): Parsed {
  const uplink = new ParsedUplink(topic.slice(0, maxTopicLength), payload, arrivedTs);
  parseInto(uplink, topic, prefix, payload, maxRejections, mayTell, format);
  // The cost counts the bytes, which are read as JSON, and the bad items: nobody counts those later, and one costs as
  // much as a good one.
  const { content, items } = uplink;
  const good = 'items' in content ? content.items.length : 0;
  uplink.parsingCost = Math.ceil(payload.length / bytesPerCost) + (items - Math.min(items, good));
  if (payload.length > largeBytes)
    uplink.items = Math.max(uplink.items, Math.floor(payload.length / bytesCountedAsItem));
  return uplink;
}

function parseInto(
  uplink: ParsedUplink,
  topic: string,
  prefix: string,
  payload: Buffer,
  maxRejections: number,
  mayTell: MayTell | undefined,
  format: PayloadFormat,
): void {
  const { rejections } = uplink;
  const kind = topic.slice(prefix.length) as UpTopic;
  if (!upTopicNames.has(kind)) {
    const message = `Devices publish to ${upTopics.slice(0, -1).join(', ')} and ${upTopics.at(-1)}.`;
    rejections.push({ reason: 'unknown-topic', message });
    return;
  }
  const text = readText(payload, rejections);
  if (text === null) return;
  const isList = kind === 'measurements' || kind === 'events';
  const value =
    isList && format === 'ndjson'
      ? parseLines(text, rejections, maxRejections)
      : parseJson(text, rejections);
  if (value === undefined) return;
  if (kind === 'measurements' || kind === 'events') {
    if (Array.isArray(value)) uplink.items = Math.min(value.length, maxItems);
    uplink.content =
      kind === 'measurements'
        ? { kind, items: parseMeasurements(value, rejections, maxRejections) }
        : { kind, items: parseItems(EventReport, value, rejections, maxRejections) };
  } else uplink.content = parseContent(kind, value, rejections);
  const unknown = mayTell ? findUnknown(kind, value, mayTell) : null;
  if (unknown) rejections.push(unknown);
}

function parseContent(
  kind: Exclude<UpTopic, 'measurements' | 'events'>,
  value: unknown,
  rejections: Rejection[],
): UplinkContent {
  switch (kind) {
    case 'state': {
      const report = parseOne(StateReport, value, '', rejections);
      return report ? { kind, report } : { kind: 'none' };
    }
    case 'configuration': {
      const configuration = parseOne(Configuration, value, '', rejections);
      return configuration ? { kind, configuration } : { kind: 'none' };
    }
    case 'time': {
      const request = parseOne(TimeRequest, value, '', rejections);
      return request ? { kind, request } : { kind: 'none' };
    }
    case 'command': {
      const answer = parseOne(CommandAnswer, value, '', rejections);
      return answer
        ? { kind: 'command-answer', answer: trim(answer, rejections) }
        : { kind: 'none' };
    }
    case 'profile': {
      const message = parseOne(ProfileMessage, value, '', rejections);
      if (!message) return { kind: 'none' };
      if (message.state === 'request') return { kind: 'profile-request' };
      return { kind: 'profile-answer', answer: message };
    }
  }
}

/** The answer counts, however much it tells: a text is cut, and a result that is too large is left out. */
function trim({ result, text, ...answer }: CommandAnswer, rejections: Rejection[]): CommandAnswer {
  const isKept = result === undefined || commandJson(result) !== null;
  if (!isKept) {
    const message = `The answer counts, but not its result: ${commandJsonRule}.`;
    rejections.push({ reason: 'invalid-payload', message, path: '/result' });
  }
  const told = text?.toWellFormed().replaceAll('\0', '\uFFFD');
  return {
    ...answer,
    ...(isKept && result !== undefined ? { result } : {}),
    ...(told === undefined ? {} : { text: cutText(told, maxAnswerText) }),
  };
}

/** How to read a payload: as one JSON text, or as one item a line. */
export type PayloadFormat = 'json' | 'ndjson';

/** A payload with more bytes is large: it may have fewer parts, and counts as more measurements. */
const largeBytes = 65_536;
/** A thousand positions with times have 7,000. */
const maxLargeParts = 12_000;

/** The text of a payload. Null, with a rejection, if it is not UTF-8 or has too many parts to be parsed. */
function readText(payload: Buffer, rejections: Rejection[]): string | null {
  const text = decodeUtf8(payload);
  if (text === null) {
    rejections.push({ reason: 'invalid-json', message: 'The payload is not UTF-8.' });
    return null;
  }
  const max = payload.length > largeBytes ? maxLargeParts : maxJsonParts;
  if (text.length > max && measureJson(text, Infinity, max).parts > max) {
    const message = `The payload has more than ${max} {, [ and , outside its strings.`;
    rejections.push({ reason: 'invalid-payload', message, path: '' });
    return null;
  }
  return text;
}

/** Undefined, with a rejection, if the text is not JSON. */
function parseJson(text: string, rejections: Rejection[]): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = `The payload is not JSON: ${whyNoJson(text, error)}`;
    rejections.push({ reason: 'invalid-json', message });
    return undefined;
  }
}

/** Longer texts are not read a second time to find the fault: a device may send many of them. */
const longText = 16_384;

/** What is wrong, and where, for a short text; for a longer one, the message of JSON.parse. */
function whyNoJson(text: string, error: unknown, isLine = false): string {
  const found = text.length > longText ? null : findJsonError(text);
  if (found === null) return error instanceof Error ? error.message : '';
  const message = tellJsonError(found).replaceAll('the end of the file', 'the end of the payload');
  return isLine
    ? message.replace(/^line \d+, /, '').replaceAll('of the payload', 'of the line')
    : message;
}

/**
 * Parses one item a line. A line that is not JSON becomes a rejection and leaves `emptyLine` in its place. An empty
 * line counts as a line, but is no item. Returns undefined if there are too many lines, or none that can be read.
 */
function parseLines(text: string, rejections: Rejection[], maxRejections: number): unknown {
  const lines = text.split('\n', maxItems + 2);
  if (lines.length > maxItems + 1) return tooManyItems(countLines(text), rejections);
  if (lines.at(-1)?.trim() === '') lines.pop();
  if (lines.length > maxItems) return tooManyItems(lines.length, rejections);
  let more = 0;
  const items = lines.map((line, index) => {
    if (line.trim() === '') return emptyLine;
    try {
      return JSON.parse(line) as unknown;
    } catch (error) {
      const message = `Line ${index + 1} is not JSON: ${whyNoJson(line, error, true)}`;
      if (rejections.length >= maxRejections) more += 1;
      else rejections.push({ reason: 'invalid-json', message, path: `/${index}` });
      return emptyLine;
    }
  });
  if (more > 0) rejections.push(countedOnly(more));
  if (lines.length === 0)
    rejections.push({ reason: 'invalid-json', message: 'The payload has no lines.' });
  return items.every((item) => item === emptyLine) ? undefined : items;
}

/** Counts without building an array: there may be a quarter of a million lines. */
function countLines(text: string): number {
  let lines = text.slice(text.lastIndexOf('\n') + 1).trim() === '' ? 0 : 1;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) === 0x0a) lines += 1;
  return lines;
}

/** Stands for a line without an item. No JSON text has this value. */
const emptyLine = undefined;

/** Rejects the whole message. */
function tooManyItems(count: number, rejections: Rejection[]): undefined {
  const message = `${count} items in one message; at most ${maxItems} are accepted.`;
  rejections.push({ reason: 'invalid-payload', message, path: '' });
}

/** Schemas whose values may have thousands of members. */
const nested = new Set<z.ZodType>([EventReport, Configuration]);

/** As `parseItems`; nearly all messages have plain measurements and nothing else, which need no schema. */
function parseMeasurements(
  sent: unknown,
  rejections: Rejection[],
  maxRejections: number,
): Item<SentMeasurement>[] {
  if (!Array.isArray(sent)) {
    const value = readPlain(sent);
    if (value) return [{ index: null, value }];
  } else if (sent.length <= maxItems) {
    const items: Item<SentMeasurement>[] = [];
    for (let index = 0; index < sent.length; index += 1) {
      const value = readPlain(sent[index]);
      if (!value) break;
      items.push({ index, value });
    }
    if (items.length === sent.length) return items;
  }
  return parseItems(SentMeasurement, sent, rejections, maxRejections);
}

/** A number, its sense and perhaps its time, as `SentMeasurement` allows them. Null: the schema says what it is. */
function readPlain(sent: unknown): SentMeasurement | null {
  if (typeof sent !== 'object' || sent === null) return null;
  const { sId, val, ts } = sent as { sId?: unknown; val?: unknown; ts?: unknown };
  if (typeof sId !== 'string' || sId.includes('\0') || !sId.isWellFormed()) return null;
  if (typeof val !== 'number' || !Number.isFinite(val)) return null;
  if (ts === undefined) return { sId, val };
  if (typeof ts !== 'number' || !Number.isSafeInteger(ts) || ts < 0) return null;
  return { sId, val, ts };
}

/** The good items. The first `maxRejections` bad ones are rejected one by one, the rest as a count. */
function parseItems<T>(
  schema: z.ZodType<T>,
  sent: unknown,
  rejections: Rejection[],
  maxRejections: number,
): Item<T>[] {
  if (!Array.isArray(sent)) {
    const value = parseOne(schema, sent, '', rejections);
    return value === undefined ? [] : [{ index: null, value }];
  }
  if (sent.length > maxItems) {
    tooManyItems(sent.length, rejections);
    return [];
  }
  const items: Item<T>[] = [];
  let more = 0;
  for (let index = 0; index < sent.length; index++) {
    if (sent[index] === emptyLine) continue;
    const isFull = rejections.length >= maxRejections;
    const value = isFull
      ? parseQuietly(schema, sent[index])
      : parseOne(schema, sent[index], `/${index}`, rejections);
    if (value !== undefined) items.push({ index, value });
    else if (isFull) more += 1;
  }
  if (more > 0) rejections.push(countedOnly(more));
  return items;
}

/** Parses an item once the listed rejections are full: its reason is not needed, and only an object can be good. */
function parseQuietly<T>(schema: z.ZodType<T>, sent: unknown): T | undefined {
  return typeof sent === 'object' && sent !== null ? schema.safeParse(sent).data : undefined;
}

/** Undefined if the value does not fit the schema, with one rejection that names the first problem. */
function parseOne<T>(
  schema: z.ZodType<T>,
  sent: unknown,
  at: string,
  rejections: Rejection[],
): T | undefined {
  const early = nested.has(schema) && isLarge(sent) ? findFaults(schema, sent) : null;
  const result = early ? null : schema.safeParse(sent);
  if (result?.success) return result.data;
  const [first, ...others] = early ?? result?.error.issues ?? [];
  const path = at + jsonPointer(first?.path ?? []);
  const more = others.length > 0 ? ` (and ${early ? '' : `${others.length} `}more)` : '';
  rejections.push({
    reason: 'invalid-payload',
    message: `${describeIssue(first?.message ?? '')}${more}`,
    path,
  });
  return undefined;
}

/** The problems of the first part that has any. Listing all problems of a large message takes too long. */
function findFaults(schema: z.ZodType, sent: unknown): PartProblem[] | null {
  for (const { problems } of checkInParts(schema, sent)) if (problems.length > 0) return problems;
  return null;
}

/** Asked when a device sent an unknown member: whether to report it now. */
type MayTell = () => boolean;

const hourMs = 3_600_000;
/** How many reported devices are remembered. With more of them, one may be told again within the hour. */
const maxRemembered = 50_000;

/** Allows one report an hour for each device, as far as this process knows. */
function createUnknownMemberThrottle(now: MonotonicClock): (uuid: string) => boolean {
  const reportedMs = new LRUCache<string, number>(atMost(maxRemembered));
  return (uuid) => {
    const monotonicMs = now();
    if (monotonicMs - (reportedMs.get(uuid) ?? -Infinity) < hourMs) return false;
    reportedMs.set(uuid, monotonicMs);
    return true;
  };
}

const schemas: Record<UpTopic, z.ZodType> = {
  measurements: SentMeasurement,
  state: StateReport,
  events: EventReport,
  profile: ProfileMessage,
  configuration: Configuration,
  time: TimeRequest,
  command: CommandAnswer,
};

/**
 * Reports members that have no effect: the first one, with the known name that was probably meant. This looks at every
 * message, so the usual case, no such member, allocates nothing and does not ask `mayTell`.
 */
function findUnknown(kind: UpTopic, sent: unknown, mayTell: MayTell): Rejection | null {
  if (!Array.isArray(sent)) return hasUnknown(kind, sent) ? tellOf(kind, sent, '', mayTell) : null;
  for (let index = 0; index < sent.length; index += 1)
    if (hasUnknown(kind, sent[index])) return tellOf(kind, sent[index], `/${index}`, mayTell);
  return null;
}

function hasUnknown(kind: UpTopic, item: unknown): boolean {
  if (kind !== 'measurements' || Array.isArray(item))
    return hasUnknownMember(knownOf(schemas[kind]), item);
  return hasUnknownOfMeasurement(item);
}

/**
 * Most measurements are a number and its time. Comparing their names with three literals costs next to nothing. The
 * names are listed only once, because listing takes milliseconds if an object has thousands.
 */
function hasUnknownOfMeasurement(item: unknown): boolean {
  if (typeof item !== 'object' || item === null) return false;
  for (const name in item)
    if (name !== 'sId' && name !== 'val' && name !== 'ts' && !isPrivateName(name)) return true;
  const isPosition = 'val' in item && typeof item.val === 'object';
  return isPosition && hasUnknownMember(knownOf(schemas.measurements), item);
}

function tellOf(kind: UpTopic, item: unknown, at: string, mayTell: MayTell): Rejection | null {
  const [first, ...more] = mayTell() ? warnOfUnknown(schemas[kind], item) : [];
  if (!first) return null;
  const others = more.length > 0 ? ` (and ${more.length} more of this item)` : '';
  return {
    reason: 'unknown-member',
    message: `${first.message}${others}; reported once an hour`,
    path: at + first.path,
  };
}
