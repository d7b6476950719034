import { isUtf8 } from 'node:buffer';
import type { ConnectionEnding, ConnectionRefusal } from '../ports.ts';

/** The reason codes of MQTT 5 that are sent or distinguished here, section 2.4. */
export const reason = {
  success: 0x00,
  unspecified: 0x80,
  malformed: 0x81,
  protocolError: 0x82,
  implementationSpecific: 0x83,
  unsupportedVersion: 0x84,
  notAuthorized: 0x87,
  unavailable: 0x88,
  busy: 0x89,
  shuttingDown: 0x8b,
  authenticationMethod: 0x8c,
  keepaliveTimeout: 0x8d,
  takenOver: 0x8e,
  filterInvalid: 0x8f,
  topicInvalid: 0x90,
  receiveMaximumExceeded: 0x93,
  topicAliasInvalid: 0x94,
  tooLarge: 0x95,
  quotaExceeded: 0x97,
  payloadFormatInvalid: 0x99,
  retainNotSupported: 0x9a,
  rateExceeded: 0x9f,
  subscriptionIdentifiersNotSupported: 0xa1,
} as const;

/** Reason codes of a DISCONNECT, section 3.14.2.1. 0: none is sent, because nobody is there to read it. */
export const disconnectCodes: Record<ConnectionEnding, number> = {
  peer: 0,
  keepalive: reason.keepaliveTimeout,
  malformed: reason.malformed,
  unfinished: reason.busy,
  'foreign-topic': reason.notAuthorized,
  replaced: reason.takenOver,
  'too-many-connections': reason.quotaExceeded,
  'access-ended': reason.notAuthorized,
  'not-stored': reason.busy,
  unread: reason.unspecified,
  shutdown: reason.shuttingDown,
};

/** Reason codes of a CONNACK, section 3.2.2.2. */
export const refusalCodes: Record<ConnectionRefusal, number> = {
  'not-authorized': reason.notAuthorized,
  unavailable: reason.unavailable,
  // MQTT 3.1.1 only: in MQTT 5 a client without an identifier is assigned one.
  identifier: reason.implementationSpecific,
  'protocol-version': reason.unsupportedVersion,
  malformed: reason.malformed,
  timeout: reason.busy,
  'too-many': reason.busy,
  reconnects: reason.rateExceeded,
  connections: reason.quotaExceeded,
};

/** A packet in `bytes`: its flags, where its variable header begins, and where it ends. */
export type Frame = { type: number; flags: number; start: number; end: number };

/** The packet that begins at `at`. The caller knows that it is whole and its length valid. */
export function frameAt(bytes: Buffer, at: number): Frame {
  const first = bytes[at] as number;
  const length = readVarint(bytes, at + 1, bytes.length);
  const start = length?.end ?? bytes.length;
  return { type: first >> 4, flags: first & 15, start, end: start + (length?.value ?? 0) };
}

/** The result of checking a packet: bytes for aedes, or the reason code of its refusal. */
export type Checked = { fault: number; bytes: Buffer | null };

export const refused = (fault: number): Checked => ({ fault, bytes: null });

const { malformed, protocolError } = reason;

/** Reason codes that a client may send, MQTT 5 sections 3.4.2.1, 3.6.2.1 and 3.14.2.1. */
const ackCodes = new Set([0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]);
const releaseCodes = new Set([0, 0x92]);
const leaveCodes = new Set([0, 4, 0x80, 0x81, 0x82, 0x83, ...range(0x90, 0x9b)]);

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, n) => from + n);
}

/**
 * Checks an acknowledgement, section 3.4 to 3.7. aedes gets it in the form of 3.1.1, without reason code and
 * properties. The frame scanner has checked its length.
 */
export function checkAck(bytes: Buffer, { type, flags, start, end }: Frame): Checked {
  // [MQTT-3.6.1-1]
  if (flags !== (type === 6 ? 2 : 0) || end < start + 2) return refused(malformed);
  const codes = type < 6 ? ackCodes : releaseCodes;
  if (end > start + 2 && !codes.has(bytes[start + 2] as number)) return refused(malformed);
  if (end > start + 3) {
    const { fault, end: read } = readProperties(bytes, start + 3, end, 'ack');
    if (fault || read !== end) return refused(fault || malformed);
  }
  const id = bytes.readUInt16BE(start);
  return { fault: 0, bytes: Buffer.from([(type << 4) | flags, 2, id >> 8, id & 255]) };
}

/** Checks a DISCONNECT. `expirySeconds`: what the CONNECT asked for; 0 in 3.1.1, where a code is not allowed. */
export function checkDisconnect(
  bytes: Buffer,
  { flags, start, end }: Frame,
  expirySeconds: number,
): Checked {
  // [MQTT-3.14.1-1]
  if (flags !== 0) return refused(malformed);
  const code = end > start ? (bytes[start] as number) : 0;
  if (!leaveCodes.has(code)) return refused(malformed);
  if (end > start + 1) {
    const { fault, end: read, values } = readProperties(bytes, start + 1, end, 'disconnect');
    if (fault || read !== end) return refused(fault || malformed);
    // A session that was to end with its connection cannot be kept any more. Section 3.14.2.2.2.
    if (expirySeconds === 0 && (values.get(property.sessionExpiry) ?? 0) > 0)
      return refused(protocolError);
  }
  return { fault: 0, bytes: Buffer.from(end > start ? [0xe0, 2, code, 0] : [0xe0, 0]) };
}

type FilterLimits = { maxFilterBytes: number; maxTopicLevels: number };

/** Checks a SUBSCRIBE or UNSUBSCRIBE of either version, sections 3.8 and 3.10. aedes gets it without its properties. */
export function checkFilters(
  bytes: Buffer,
  { type, flags, start, end }: Frame,
  { maxFilterBytes, maxTopicLevels }: FilterLimits,
  isV5: boolean,
): Checked {
  const isSubscribe = type === 8;
  // [MQTT-3.8.1-1] [MQTT-3.10.1-1]
  if (flags !== 2 || end < start + 2) return refused(malformed);
  // [MQTT-2.3.1-1], in MQTT 5 [MQTT-2.2.1-3]
  if (bytes.readUInt16BE(start) === 0) return refused(protocolError);
  const place = isSubscribe ? 'subscribe' : 'unsubscribe';
  const properties = isV5 ? readProperties(bytes, start + 2, end, place) : noProperties(start + 2);
  if (properties.fault) return refused(properties.fault);
  const identifier = properties.values.get(property.subscriptionIdentifier);
  if (identifier !== undefined)
    return refused(identifier ? reason.subscriptionIdentifiersNotSupported : protocolError);
  let next = properties.end;
  // [MQTT-3.8.3-3] [MQTT-3.10.3-2], in MQTT 5 [MQTT-3.8.3-2] [MQTT-3.10.3-2]
  if (next === end) return refused(protocolError);
  if (end - next > maxFilterBytes) return refused(reason.tooLarge);
  while (next < end) {
    const filterEnd = endOfText(bytes, next, end);
    if (filterEnd < 0) return refused(malformed);
    if (!isFilter(bytes.toString('latin1', next + 2, filterEnd), maxTopicLevels))
      return refused(reason.filterInvalid);
    if (isSubscribe) {
      const fault = filterEnd < end ? faultOfOptions(bytes, next + 2, filterEnd, isV5) : malformed;
      if (fault) return refused(fault);
    }
    next = filterEnd + (isSubscribe ? 1 : 0);
  }
  if (!isV5) return { fault: 0, bytes: packet((type << 4) | flags, [bytes.subarray(start, end)]) };
  return { fault: 0, bytes: withoutProperties(bytes, type, flags, start, properties.end, end) };
}

const share = Buffer.from('$share/');

/** Subscription options, section 3.8.3.1; in 3.1.1 there is only a QoS [MQTT-3-8.3-4]. */
function faultOfOptions(bytes: Buffer, at: number, end: number, isV5: boolean): number {
  const options = bytes[end] as number;
  if (!isV5) return options > 2 ? malformed : 0;
  // [MQTT-3.8.3-5]
  if (options > 0x3f) return malformed;
  if ((options & 3) === 3 || (options & 0x30) === 0x30) return protocolError;
  // [MQTT-3.8.3-4]
  const isShared = bytes.subarray(at, Math.min(end, at + share.length)).equals(share);
  return isShared && options & 4 ? protocolError : 0;
}

/** Section 4.7.1: # only as the last level, + only as a whole level. [MQTT-4.7.1-1] [MQTT-4.7.1-2] */
function isFilter(filter: string, maxTopicLevels: number): boolean {
  const levels = filter.split('/', maxTopicLevels + 1);
  // [MQTT-4.7.3-1]
  if (filter === '' || levels.length > maxTopicLevels) return false;
  return levels.every((level, n) => {
    if (level.length > 1) return !/[+#]/.test(level);
    return level !== '#' || n === levels.length - 1;
  });
}

function withoutProperties(
  bytes: Buffer,
  type: number,
  flags: number,
  start: number,
  from: number,
  end: number,
): Buffer {
  const id = bytes.subarray(start, start + 2);
  return packet((type << 4) | flags, [id, Buffer.from([0]), bytes.subarray(from, end)]);
}

/** A packet with a fixed header and these parts. */
export function packet(first: number, parts: Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([Buffer.from([first]), varint(length), ...parts]);
}

/** A variable byte integer, section 1.5.5. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  do {
    bytes.push((left % 128) + (left >= 128 ? 128 : 0));
    left = Math.floor(left / 128);
  } while (left > 0);
  return Buffer.from(bytes);
}

/** Where a client's packets have properties. */
type PropertiesOf =
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

/** What a client may send where; anything else is a protocol error there. */
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

/** A property list that was read. `fault`: the reason code of its packet's refusal, or 0. */
type Properties = {
  fault: number;
  /** Where the bytes after the list begin. */
  end: number;
  /** The numbers by identifier; for a value that is not a number, its length in bytes. */
  values: ReadonlyMap<number, number>;
};

const none: ReadonlyMap<number, number> = new Map();

/** Stands for the properties of a packet of MQTT 3.1.1, at `end`. */
export const noProperties = (end: number): Properties => ({ fault: 0, end, values: none });

const failed = (fault: number): Properties => ({ fault, end: -1, values: none });

/**
 * Reads the properties that begin at `at` with their length, in a packet that ends at `limit`. Each byte is looked at
 * once, whatever the lengths claim, and only numbers are kept.
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
    // Every property but the user property may occur once. Section 2.2.2.2.
    if (form !== 'pair') {
      if (values.has(identifier.value)) return failed(protocolError);
      values.set(identifier.value, value.value);
    }
    next = value.end;
  }
  return { fault: 0, end, values };
}

/** A value and where it ends. If it is invalid, `end` is -1 and `value` the reason code. */
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

/** Where a field ends that begins with two bytes of length; -1: beyond `limit`. */
export function endOfField(bytes: Buffer, at: number, limit: number): number {
  if (at < 0 || at + 2 > limit) return -1;
  const end = at + 2 + (((bytes[at] as number) << 8) | (bytes[at + 1] as number));
  return end > limit ? -1 : end;
}

/** The same for a text, which is UTF-8 without U+0000; -1 if it is not. [MQTT-1.5.4-1] [MQTT-1.5.4-2] */
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

/** A variable byte integer, section 1.5.5; null unless it ends within four bytes and `limit`. */
function readVarint(bytes: Buffer, at: number, limit: number): Value | null {
  let value = 0;
  for (let n = 0; n < 4 && at + n < limit; n += 1) {
    const byte = bytes[at + n] as number;
    value += (byte & 127) * 128 ** n;
    if (byte < 128) return { value, end: at + n + 1 };
  }
  return null;
}

/** What the CONNACK of MQTT 5 tells a client. */
export type Welcome = {
  /** The largest packet that it may send. Only measurements may be larger than the other packets. */
  maxPacketBytes: number;
  receiveMaximum: number;
  /** Set if the client gave no identifier. [MQTT-3.2.2-16] */
  assignedClientId: string | null;
  /** Set if it differs from what the client asked for. [MQTT-3.2.2-21] */
  keepaliveSeconds: number | null;
};

const number = (identifier: number, value: number, bytes: 1 | 2 | 4): Buffer => {
  const field = Buffer.alloc(1 + bytes, identifier);
  field.writeUIntBE(value, 1, bytes);
  return field;
};

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes]);
}

/** The answer to a CONNECT that is accepted, section 3.2: the session is new and ends with its connection. */
export function connack(welcome: Welcome): Buffer {
  const properties = [
    number(property.sessionExpiry, 0, 4),
    number(property.receiveMaximum, Math.min(welcome.receiveMaximum, 65_535), 2),
    number(property.retainAvailable, 0, 1),
    number(property.maximumPacketSize, welcome.maxPacketBytes, 4),
    number(property.topicAliasMaximum, 0, 2),
    number(property.subscriptionIdentifiersAvailable, 0, 1),
    number(property.sharedSubscriptionAvailable, 0, 1),
  ];
  if (welcome.assignedClientId !== null)
    properties.push(
      Buffer.from([property.assignedClientIdentifier]),
      text(welcome.assignedClientId),
    );
  if (welcome.keepaliveSeconds !== null)
    properties.push(number(property.serverKeepalive, welcome.keepaliveSeconds, 2));
  const field = Buffer.concat(properties);
  return packet(0x20, [Buffer.from([0, 0]), varint(field.length), field]);
}

/** The answer to a CONNECT that is refused. */
export const connackRefusal = (code: number): Buffer => Buffer.from([0x20, 3, 0, code, 0]);

/** A DISCONNECT, section 3.14. */
export const disconnect = (code: number): Buffer => Buffer.from([0xe0, 2, code, 0]);

/** What is said besides a reason code. */
type Remarks = { reasonString: string | null; rejected: number };

/** A PUBACK or PUBREC, sections 3.4 and 3.5; without remarks it has no properties. */
export function acknowledgement(
  qos: number,
  messageId: number,
  code: number,
  remarks: Remarks | null,
): Buffer {
  const first = qos === 1 ? 0x40 : 0x50;
  const id = Buffer.from([messageId >> 8, messageId & 255]);
  if (!remarks) return packet(first, code === 0 ? [id] : [id, Buffer.from([code])]);
  const properties: Buffer[] = [];
  if (remarks.reasonString !== null)
    properties.push(Buffer.from([property.reasonString]), text(remarks.reasonString));
  properties.push(
    Buffer.from([property.userProperty]),
    text('rejected'),
    text(String(remarks.rejected)),
  );
  const field = Buffer.concat(properties);
  return packet(first, [id, Buffer.from([code]), varint(field.length), field]);
}

type Published = {
  topic: string;
  qos: 0 | 1;
  messageId: number;
  body: Buffer;
  /** How long the message is useful; null: without a limit. */
  expirySeconds: number | null;
};

/** A PUBLISH to a device, section 3.3. */
export function publish({ topic, qos, messageId, body, expirySeconds }: Published): Buffer {
  const id = qos === 0 ? [] : [Buffer.from([messageId >> 8, messageId & 255])];
  const field = expirySeconds === null ? nothing : number(property.messageExpiry, expirySeconds, 4);
  return packet(0x30 | (qos << 1), [text(topic), ...id, varint(field.length), field, body]);
}

const nothing = Buffer.alloc(0);

/** The length of such a packet in bytes, without building it. */
export function publishBytes({ topic, qos, body, expirySeconds }: Published): number {
  const properties = 1 + (expirySeconds === null ? 0 : 5);
  const length = 2 + Buffer.byteLength(topic) + (qos === 0 ? 0 : 2) + properties + body.length;
  return 1 + varint(length).length + length;
}
