import { LRUCache } from 'lru-cache';
import type { z } from 'zod';
import { Configuration } from '../../src/contract/configuration.ts';
import {
  countedOnly,
  EventReport,
  findUpTopic,
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
  upTopics,
} from '../../src/contract/uplink.ts';
import { warnOfUnknown } from '../../src/contract/warnings.ts';
import {
  decodeUtf8,
  findJsonError,
  jsonPointer,
  maxJsonParts,
  measureJson,
  tellJsonError,
} from '../../src/lib/json.ts';
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

const excerptBytes = 1_024;
/** Characters of a topic that are kept. */
export const maxTopicLength = 1_024;
/** So many bytes take about as long to parse as an ordinary measurement takes to be planned and written. */
const bytesPerCost = 100;
/** A large payload counts as a measurement for each so many bytes, however few items it has. */
const bytesCountedAsItem = 256;

/** What is kept of a payload that something is wrong with. PostgreSQL takes no U+0000. */
export const excerptOf = (payload: Buffer): string =>
  payload.toString('utf8', 0, excerptBytes).replaceAll('\0', '\uFFFD');

/** Its texts are made only when a rejection asks for them. */
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
 * Whether a second copy of a message is recognised and changes nothing, so that it may be stored without anybody being
 * told: each of its items has a time of its own. (One that has not gets that of its arrival, and is another one then.)
 */
export function isRecognisedAgain(content: UplinkContent): boolean {
  switch (content.kind) {
    case 'measurements':
      return content.items.length > 0 && content.items.every(({ value }) => value.ts !== undefined);
    // Its engine's time belongs to each.
    case 'events':
      return content.items.length > 0;
    case 'state':
      return content.report.ts !== undefined;
    default:
      return false;
  }
}

/** `items`: as how many measurements it counts: so many as were sent, or events, good and bad; 1 for anything else. */
type Parsed = Uplink & { readonly items: number };

/**
 * What a device published, item by item: what is right goes on, what is wrong is a rejection with
 * its place in the payload, the first `maxRejections` of them one by one. `prefix` is the device's
 * `upPrefix`, with which `topic` begins. `mayTell`: asked where a member has no effect, whether that is one too.
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
  // What is read as JSON costs its bytes; a bad item, which nobody counts later, as much as a good one.
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
  const kind = findUpTopic(topic, prefix);
  if (kind === null) {
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
        ? { kind, items: parseItems(SentMeasurement, value, rejections, maxRejections) }
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
    case 'profile': {
      const message = parseOne(ProfileMessage, value, '', rejections);
      if (!message) return { kind: 'none' };
      if (message.state === 'request') return { kind: 'profile-request' };
      return { kind: 'profile-answer', answer: message };
    }
  }
}

/** How a payload is to be read: one JSON text, or an item on each line. */
export type PayloadFormat = 'json' | 'ndjson';

/** Beyond so many bytes a payload is large: it may have fewer parts, and counts as more measurements. */
const largeBytes = 65_536;
/** A thousand positions with their times have 7,000. */
const maxLargeParts = 12_000;

/** The text of a payload. Null, and a rejection, where it is none or has too many parts to be parsed. */
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

/** Undefined, and a rejection, where it is no JSON. */
function parseJson(text: string, rejections: Rejection[]): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = `The payload is not JSON: ${whyNoJson(text, error)}`;
    rejections.push({ reason: 'invalid-json', message });
    return undefined;
  }
}

/** Longer texts are not read twice: a device may send many of them. */
const longText = 16_384;

/** What is wrong, and where in a short text; of a longer one what JSON.parse says. */
function whyNoJson(text: string, error: unknown, isLine = false): string {
  const found = text.length > longText ? null : findJsonError(text);
  if (found === null) return error instanceof Error ? error.message : '';
  const told = tellJsonError(found).replaceAll('the end of the file', 'the end of the payload');
  return isLine
    ? told.replace(/^line \d+, /, '').replaceAll('of the payload', 'of the line')
    : told;
}

/**
 * The items of lines; what is no JSON is a rejection, and undefined in its place. Undefined where there are too
 * many, or where none can be read. A line that is empty counts, and is no item.
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

/** Without an array of them: there may be a quarter of a million. */
function countLines(text: string): number {
  let lines = text.slice(text.lastIndexOf('\n') + 1).trim() === '' ? 0 : 1;
  for (let at = 0; at < text.length; at += 1) if (text.charCodeAt(at) === 0x0a) lines += 1;
  return lines;
}

/** Stands for a line that is no item. JSON has no such value. */
const emptyLine = undefined;

/** Rejects a message as a whole. */
function tooManyItems(count: number, rejections: Rejection[]): undefined {
  const message = `${count} items in one message; at most ${maxItems} are accepted.`;
  rejections.push({ reason: 'invalid-payload', message, path: '' });
}

/** What may have thousands of members. */
const nested = new Set<z.ZodType>([EventReport, Configuration]);

/** One item, or an array of them: those that are right. The first `maxRejections` others are rejected one by one. */
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

/** For items beyond those that are rejected one by one: the reason is not needed, and what is no object is not parsed. */
function parseQuietly<T>(schema: z.ZodType<T>, sent: unknown): T | undefined {
  return typeof sent === 'object' && sent !== null ? schema.safeParse(sent).data : undefined;
}

/** Undefined, and one rejection that names the first problem, where the schema does not fit. */
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

/** The faults of the first part that has any: to list all of a large message's takes too long. */
function findFaults(schema: z.ZodType, sent: unknown): PartProblem[] | null {
  for (const { problems } of checkInParts(schema, sent)) if (problems.length > 0) return problems;
  return null;
}

/** Asked where a device sent a member that nobody knows: whether it is to be told now. */
type MayTell = () => boolean;

const hourMs = 3_600_000;
/** Devices that are told are remembered: beyond so many, one may be told again within the hour. */
const maxRemembered = 50_000;

/** For each device once an hour, as far as this process knows. `now`: milliseconds that only go forward. */
export function createUnknownMemberThrottle(now: MonotonicClock): (uuid: string) => boolean {
  const toldMs = new LRUCache<string, number>({ max: maxRemembered });
  return (uuid) => {
    const monotonicMs = now();
    if (monotonicMs - (toldMs.get(uuid) ?? -Infinity) < hourMs) return false;
    toldMs.set(uuid, monotonicMs);
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
};

/**
 * What a device is told of members that have no effect: the first one, with the known name that was meant.
 * Looked for in every message, so the usual case, that there is none, makes nothing and asks nobody.
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
 * Nearly all are a number and its time, and nothing else: names compared cost next to nothing. They are listed
 * once, as that takes milliseconds where an object has thousands.
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

/** A large message that is coming in, or waits until it may. */
export type LargePlace = {
  readonly isIn: boolean;
  /** Gives its room back, or waits no longer. */
  leave(): void;
};

type Account = { id: number; bytes: number; waiting: Set<Place> };
type Place = { isIn: boolean; readonly bytes: number; readonly onIn: () => void };

export type LargeMessageBudget = {
  /** `onIn` is called where the message had to wait and may come in now. */
  enter(accountId: number, bytes: number, onIn: () => void): LargePlace;
  bytes(): number;
  /** Messages that wait for room. */
  waiting(): number;
};

/**
 * With what it has and what it asks for, an account may take this many times the bytes that are still free
 * (`mqtt/inflight.ts`), of three quarters of all: one alone about half. The last quarter is for accounts that have
 * nothing in the room yet.
 */
const shareOfFree = 2;
const partForSeveral = 3 / 4;

/**
 * Room for messages that are larger than others may be, from where their length is known until they are whole.
 * All of a message's bytes are reserved before they are read, so that what was begun can end. What has no room
 * waits unread: accounts in turn, each in the order in which its messages began.
 */
export function createLargeMessageBudget(maxBytes: number): LargeMessageBudget {
  const accounts = new Map<number, Account>();
  /** Accounts with messages that wait, the one whose turn is next in front. */
  const turns = new Set<Account>();
  let bytes = 0;
  let waiting = 0;
  let isLooking = false;
  let isToLook = false;

  function hasRoom(account: Account, more: number): boolean {
    if (account.bytes === 0) return bytes === 0 || bytes + more <= maxBytes;
    return account.bytes + more <= shareOfFree * (maxBytes * partForSeveral - bytes);
  }

  function move(account: Account, more: number): void {
    account.bytes += more;
    bytes += more;
    if (account.bytes === 0 && account.waiting.size === 0) accounts.delete(account.id);
  }

  /** One of each account in turn, as long as there is room for any. */
  function letIn(): void {
    for (const account of turns) {
      const [first] = account.waiting;
      if (!first || !hasRoom(account, first.bytes)) continue;
      turns.delete(account);
      account.waiting.delete(first);
      waiting -= 1;
      // Behind the others: the loop comes back to it.
      if (account.waiting.size > 0) turns.add(account);
      first.isIn = true;
      move(account, first.bytes);
      first.onIn();
    }
  }

  function leave(account: Account, place: Place): void {
    const isWaiting = account.waiting.delete(place);
    // It has left before.
    if (!isWaiting && !place.isIn) return;
    if (isWaiting) waiting -= 1;
    if (account.waiting.size === 0) turns.delete(account);
    move(account, place.isIn ? -place.bytes : 0);
    place.isIn = false;
    // What is let in may leave at once, within this call: the call that is under way looks again.
    isToLook = true;
    if (isLooking) return;
    isLooking = true;
    while (isToLook) {
      isToLook = false;
      letIn();
    }
    isLooking = false;
  }

  return {
    enter(accountId, size, onIn) {
      const account = accounts.get(accountId) ?? { id: accountId, bytes: 0, waiting: new Set() };
      accounts.set(accountId, account);
      const isIn = account.waiting.size === 0 && hasRoom(account, size);
      const place: Place = { isIn, bytes: size, onIn };
      if (isIn) move(account, size);
      else {
        account.waiting.add(place);
        turns.add(account);
        waiting += 1;
      }
      return {
        get isIn() {
          return place.isIn;
        },
        leave: () => leave(account, place),
      };
    },
    bytes: () => bytes,
    waiting: () => waiting,
  };
}
