import { reason } from './reason-codes.ts';
import { endOfText, noProperties, property, readProperties, readVarint } from './v5.ts';

/** A packet as it lies in `bytes`: its flags, and where its variable header begins and it ends. */
export type Frame = { type: number; flags: number; start: number; end: number };

/** The packet that begins at `at`; it is whole, and its length was checked. */
export function frameAt(bytes: Buffer, at: number): Frame {
  const first = bytes[at] as number;
  const length = readVarint(bytes, at + 1, bytes.length);
  const start = length?.end ?? bytes.length;
  return { type: first >> 4, flags: first & 15, start, end: start + (length?.value ?? 0) };
}

/** What is to be made of a packet: bytes for aedes, or the reason code for which it is refused. */
export type Checked = { fault: number; bytes: Buffer | null };

export const refused = (fault: number): Checked => ({ fault, bytes: null });

const { malformed, protocolError } = reason;

/** What a client may write into them, MQTT 5 sections 3.4.2.1, 3.6.2.1 and 3.14.2.1. */
const ackCodes = new Set([0, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]);
const releaseCodes = new Set([0, 0x92]);
const leaveCodes = new Set([0, 4, 0x80, 0x81, 0x82, 0x83, ...range(0x90, 0x9b)]);

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, n) => from + n);
}

/** An acknowledgement, section 3.4 to 3.7: aedes is given the one that says no more than 3.1.1's does (whose length was checked). */
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

/** `expirySeconds`: what the CONNECT asked for; 0 in 3.1.1, whose DISCONNECT ends behind its length. */
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

export type FilterLimits = { maxFilterBytes: number; maxTopicLevels: number };

/** A SUBSCRIBE or UNSUBSCRIBE of either version, sections 3.8 and 3.10; aedes gets it without its properties. */
export function checkFilters(
  bytes: Buffer,
  { type, flags, start, end }: Frame,
  { maxFilterBytes, maxTopicLevels }: FilterLimits,
  isV5: boolean,
): Checked {
  const isSubscribe = type === 8;
  // [MQTT-3.8.1-1] [MQTT-3.10.1-1]
  if (flags !== 2 || end < start + 2) return refused(malformed);
  // [MQTT-2.3.1-1], of MQTT 5 [MQTT-2.2.1-3]
  if (bytes.readUInt16BE(start) === 0) return refused(protocolError);
  const place = isSubscribe ? 'subscribe' : 'unsubscribe';
  const properties = isV5 ? readProperties(bytes, start + 2, end, place) : noProperties(start + 2);
  if (properties.fault) return refused(properties.fault);
  const identifier = properties.values.get(property.subscriptionIdentifier);
  if (identifier !== undefined)
    return refused(identifier ? reason.subscriptionIdentifiersNotSupported : protocolError);
  let next = properties.end;
  // [MQTT-3.8.3-3] [MQTT-3.10.3-2], of MQTT 5 [MQTT-3.8.3-2] [MQTT-3.10.3-2]
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

/** Section 3.8.3.1; in 3.1.1 there is a QoS and nothing else [MQTT-3-8.3-4]. */
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

/** Section 4.7.1: # as the last level only, + as a whole level only. [MQTT-4.7.1-1] [MQTT-4.7.1-2] */
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

/** A packet of these parts behind its fixed header. */
export function packet(first: number, parts: Uint8Array[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([Buffer.from([first]), varint(length), ...parts]);
}

/** A variable byte integer, section 1.5.5. */
export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  do {
    bytes.push((left % 128) + (left >= 128 ? 128 : 0));
    left = Math.floor(left / 128);
  } while (left > 0);
  return Buffer.from(bytes);
}
