import { Configuration } from '../../src/contract/configuration.ts';
import type { Rejection } from '../../src/contract/rejection.ts';
import { findUpTopic, upTopics, type UpTopic } from '../../src/contract/topic.ts';
import {
  largeBytes,
  parseItems,
  parseJson,
  parseLines,
  parseOne,
  type PayloadFormat,
  readText,
} from './uplink.ts';
import { findUnknown, type MayTell } from './unknown-members.ts';
import {
  EventReport,
  maxItems,
  ProfileMessage,
  SentMeasurement,
  TimeRequest,
} from '../../src/contract/uplink.ts';
import { StateReport, type Uplink, type UplinkContent } from '../../src/contract/uplink.ts';

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
  readonly arrivedTs: number;
  readonly rejections: Rejection[] = [];
  content: UplinkContent = { kind: 'none' };
  items = 1;
  leavesEventsOut?: true;
  parsingCost = 0;
  readonly #payload: Buffer;

  constructor(topic: string, payload: Buffer, arrivedTs: number) {
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
export type Parsed = Uplink & { readonly items: number };

/**
 * What a device published, item by item: what is right goes on, what is wrong is a rejection with
 * its place in the payload, the first `maxRejections` of them one by one. `prefix` is the device's
 * `upPrefix`, with which `topic` begins. `mayTell`: asked where a member has no effect, whether that is one too.
 */
export function parseUplink(
  topic: string,
  prefix: string,
  payload: Buffer,
  arrivedTs: number,
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
