import { isUtf8 } from 'node:buffer';
import { reason } from './reason-codes.ts';

/** Where a client's packets have properties. */
export type PropertiesOf =
  'connect' | 'will' | 'publish' | 'ack' | 'subscribe' | 'unsubscribe' | 'disconnect';

/** Identifiers of properties, MQTT 5 section 2.2.2.2. */
export const property = {
  payloadFormat: 0x01,
  messageExpiry: 0x02,
  contentType: 0x03,
  responseTopic: 0x08,
  correlationData: 0x09,
  subscriptionIdentifier: 0x0b,
  sessionExpiry: 0x11,
  assignedClientIdentifier: 0x12,
  serverKeepalive: 0x13,
  authenticationMethod: 0x15,
  authenticationData: 0x16,
  requestProblemInformation: 0x17,
  willDelay: 0x18,
  requestResponseInformation: 0x19,
  reasonString: 0x1f,
  receiveMaximum: 0x21,
  topicAliasMaximum: 0x22,
  topicAlias: 0x23,
  retainAvailable: 0x25,
  userProperty: 0x26,
  maximumPacketSize: 0x27,
  subscriptionIdentifiersAvailable: 0x29,
  sharedSubscriptionAvailable: 0x2a,
} as const;

type Form = 'flag' | 'two' | 'four' | 'varint' | 'text' | 'topic' | 'binary' | 'pair';

const ofMessages: [number, Form][] = [
  [property.payloadFormat, 'flag'],
  [property.messageExpiry, 'four'],
  [property.contentType, 'text'],
  [property.responseTopic, 'topic'],
  [property.correlationData, 'binary'],
];
const ofAll: [number, Form][] = [[property.userProperty, 'pair']];
const reasonString: [number, Form] = [property.reasonString, 'text'];

/** What a client may send where; everything else is a protocol error there. */
const forms: Record<PropertiesOf, ReadonlyMap<number, Form>> = {
  connect: new Map([
    [property.sessionExpiry, 'four'],
    [property.authenticationMethod, 'text'],
    [property.authenticationData, 'binary'],
    [property.requestProblemInformation, 'flag'],
    [property.requestResponseInformation, 'flag'],
    [property.receiveMaximum, 'two'],
    [property.topicAliasMaximum, 'two'],
    [property.maximumPacketSize, 'four'],
    ...ofAll,
  ]),
  will: new Map([[property.willDelay, 'four'], ...ofMessages, ...ofAll]),
  publish: new Map([[property.topicAlias, 'two'], ...ofMessages, ...ofAll]),
  ack: new Map([reasonString, ...ofAll]),
  subscribe: new Map([[property.subscriptionIdentifier, 'varint'], ...ofAll]),
  unsubscribe: new Map(ofAll),
  disconnect: new Map([[property.sessionExpiry, 'four'], reasonString, ...ofAll]),
};

const { malformed, protocolError } = reason;

/** A field of properties that was read; `fault`: the reason code for which its packet is refused, or 0. */
export type Properties = {
  fault: number;
  /** Where what follows the field begins. */
  end: number;
  /** The numbers by their identifiers; of what is no number, its length in bytes. */
  values: ReadonlyMap<number, number>;
};

const none: ReadonlyMap<number, number> = new Map();

/** What a packet of MQTT 3.1.1 has in place of properties that begin at `end`. */
export const noProperties = (end: number): Properties => ({ fault: 0, end, values: none });

const failed = (fault: number): Properties => ({ fault, end: -1, values: none });

/**
 * Reads the properties that begin at `at` with their length, in a packet that ends at `limit`. Their bytes
 * are looked at once, whatever they claim to be, and nothing of them is kept but numbers.
 */
export function readProperties(
  bytes: Buffer,
  at: number,
  limit: number,
  place: PropertiesOf,
): Properties {
  const length = readVarint(bytes, at, limit);
  if (length === null) return failed(malformed);
  const end = length.end + length.value;
  if (end > limit) return failed(malformed);
  if (length.value === 0) return { fault: 0, end, values: none };
  const values = new Map<number, number>();
  let next = length.end;
  while (next < end) {
    const identifier = readVarint(bytes, next, end);
    if (identifier === null) return failed(malformed);
    const form = forms[place].get(identifier.value);
    if (form === undefined) return failed(protocolError);
    const value = readValue(bytes, identifier.end, end, form);
    if (value.end < 0) return failed(value.value);
    // All but user properties may stand there once. Section 2.2.2.2.
    if (form !== 'pair') {
      if (values.has(identifier.value)) return failed(protocolError);
      values.set(identifier.value, value.value);
    }
    next = value.end;
  }
  return { fault: 0, end, values };
}

/** A value and where it ends; where it is wrong `end` is -1 and `value` the reason code. */
type Value = { value: number; end: number };

function readValue(bytes: Buffer, at: number, limit: number, form: Form): Value {
  switch (form) {
    case 'flag':
      if (at >= limit) return { value: malformed, end: -1 };
      // Anything but 0 and 1 is a protocol error, sections 3.1.2.11.6 and 7, 3.3.2.3.2.
      if ((bytes[at] as number) > 1) return { value: protocolError, end: -1 };
      return { value: bytes[at] as number, end: at + 1 };
    case 'two':
      if (at + 2 > limit) return { value: malformed, end: -1 };
      return { value: bytes.readUInt16BE(at), end: at + 2 };
    case 'four':
      if (at + 4 > limit) return { value: malformed, end: -1 };
      return { value: bytes.readUInt32BE(at), end: at + 4 };
    case 'varint':
      return readVarint(bytes, at, limit) ?? { value: malformed, end: -1 };
    case 'binary':
      return field(at, endOfField(bytes, at, limit));
    case 'topic': {
      const end = endOfText(bytes, at, limit);
      const isWild = end >= 0 && hasWildcard(bytes, at + 2, end);
      // [MQTT-3.3.2-14]
      return isWild ? { value: protocolError, end: -1 } : field(at, end);
    }
    case 'text':
      return field(at, endOfText(bytes, at, limit));
    case 'pair': {
      const middle = endOfText(bytes, at, limit);
      return field(at, middle < 0 ? -1 : endOfText(bytes, middle, limit));
    }
  }
}

const field = (at: number, end: number): Value => ({
  value: end < 0 ? malformed : end - at - 2,
  end,
});

/** Where a field of two bytes of length and so many bytes ends; -1: beyond `limit`. */
export function endOfField(bytes: Buffer, at: number, limit: number): number {
  if (at < 0 || at + 2 > limit) return -1;
  const end = at + 2 + (((bytes[at] as number) << 8) | (bytes[at + 1] as number));
  return end > limit ? -1 : end;
}

/** The same for a text, which is UTF-8 without U+0000; -1 where it is not. [MQTT-1.5.4-1] [MQTT-1.5.4-2] */
export function endOfText(bytes: Buffer, at: number, limit: number): number {
  const end = endOfField(bytes, at, limit);
  let isPlain = true;
  for (let n = at + 2; n < end; n += 1) {
    const byte = bytes[n] as number;
    if (byte === 0) return -1;
    if (byte > 127) isPlain = false;
  }
  return isPlain || isUtf8(bytes.subarray(at + 2, end)) ? end : -1;
}

// + and #
export function hasWildcard(bytes: Buffer, at: number, end: number): boolean {
  for (let n = at; n < end; n += 1) if (bytes[n] === 0x2b || bytes[n] === 0x23) return true;
  return false;
}

/** A variable byte integer, section 1.5.5; null where it does not end within four bytes and `limit`. */
export function readVarint(bytes: Buffer, at: number, limit: number): Value | null {
  let value = 0;
  for (let n = 0; n < 4 && at + n < limit; n += 1) {
    const byte = bytes[at + n] as number;
    value += (byte & 127) * 128 ** n;
    if (byte < 128) return { value, end: at + n + 1 };
  }
  return null;
}
