import {
  endOfField,
  endOfText,
  type Frame,
  hasWildcard,
  noProperties,
  packet,
  property,
  readProperties,
  reason,
} from './v5.ts';

/** What a client of MQTT 5 asked for in its CONNECT, as far as it affects what it is sent. */
export type V5Session = {
  /** The largest packet that it accepts, in bytes; `Infinity` if it named none. Section 3.1.2.11.4. */
  maxPacketBytes: number;
  /** Whether acknowledgements may state a reason. Section 3.1.2.11.7. */
  wantsProblems: boolean;
  /** The session expiry that it asked for. Here every session ends with its connection. */
  expirySeconds: number;
  keepaliveSeconds: number;
  hasIdentifier: boolean;
};

type CheckedConnect =
  { fault: number; bytes: null; session: null } | { fault: 0; bytes: Buffer; session: V5Session };

const { malformed, protocolError } = reason;
const refused = (fault: number): CheckedConnect => ({ fault, bytes: null, session: null });

/** The protocol name and version that a whole CONNECT asks for; null if it has none. */
export function protocolOf(
  bytes: Buffer,
  { start, end }: Frame,
): { name: string; version: number } | null {
  const nameEnd = endOfField(bytes, start, end);
  if (nameEnd < 0 || nameEnd >= end) return null;
  const name = bytes.toString('latin1', start + 2, nameEnd);
  return { name, version: bytes[nameEnd] as number };
}

/** Checks a CONNECT, section 3.1, and rebuilds it for aedes without the properties of MQTT 5. */
export function checkConnect(
  bytes: Buffer,
  { flags, start, end }: Frame,
  isV5: boolean,
): CheckedConnect {
  // After the protocol name and version come the flags and the keep-alive.
  const head = endOfField(bytes, start, end) + 1;
  if (flags !== 0 || head + 3 > end) return refused(malformed);
  const bits = bytes[head] as number;
  const has = { will: bits & 4, user: bits & 0x80, password: bits & 0x40 };
  // [MQTT-3.1.2-3] [MQTT-3.1.2-11], -12, -13; in 3.1.1 [MQTT-3.1.2-13], -14, -15.
  if (bits & 1 || (bits & 0x18) === 0x18 || (!has.will && bits & 0x38)) return refused(malformed);
  // No password without a user name, in 3.1.1 [MQTT-3.1.2-22].
  if (!isV5 && has.password && !has.user) return refused(malformed);
  // [MQTT-3.2.2-13]
  if (isV5 && bits & 0x20) return refused(reason.retainNotSupported);
  const properties = isV5
    ? readProperties(bytes, head + 3, end, 'connect')
    : noProperties(head + 3);
  if (properties.fault) return refused(properties.fault);
  const { values } = properties;
  const fault = faultOfValues(values);
  if (fault) return refused(fault);
  const keepaliveSeconds = bytes.readUInt16BE(head + 1);
  const hasIdentifier = bytes[properties.end] !== 0 || bytes[properties.end + 1] !== 0;
  const field = isV5 ? [emptyField] : [];
  const parts = [bytes.subarray(start, head + 3), ...field];
  let next = endOfText(bytes, properties.end, end);
  if (next < 0) return refused(malformed);
  parts.push(bytes.subarray(properties.end, next));
  if (has.will) {
    const will = checkWill(bytes, next, end, isV5);
    if (will.fault) return refused(will.fault);
    parts.push(...field, bytes.subarray(will.from, will.end));
    next = will.end;
  }
  const credentials = next;
  if (has.user) next = endOfText(bytes, next, end);
  if (has.password) next = endOfField(bytes, next, end);
  if (next !== end) return refused(malformed);
  parts.push(bytes.subarray(credentials, end));
  return {
    fault: 0,
    bytes: packet(0x10, parts),
    session: { ...sessionOf(values), keepaliveSeconds, hasIdentifier },
  };
}

/** Every CONNACK that we send fits into this. */
const leastPacketBytes = 64;
/** A CONNACK that holds only a reason code. */
const refusalBytes = 5;
/** Stands for a reason code when no answer fits. */
export const unspeakable = -1;

/** An empty property list. */
const emptyField = Buffer.from([0]);

function faultOfValues(values: ReadonlyMap<number, number>): number {
  const hasMethod = values.has(property.authenticationMethod);
  if (values.get(property.receiveMaximum) === 0) return protocolError;
  if (values.get(property.maximumPacketSize) === 0) return protocolError;
  if (values.has(property.authenticationData) && !hasMethod) return protocolError;
  const most = values.get(property.maximumPacketSize) ?? Infinity;
  if (most < leastPacketBytes) return most < refusalBytes ? unspeakable : reason.tooLarge;
  // Credentials are a user name and a password; there is no extended authentication. Section 4.12.
  return hasMethod ? reason.authenticationMethod : 0;
}

function checkWill(bytes: Buffer, at: number, limit: number, isV5: boolean) {
  const { fault, end: from } = isV5 ? readProperties(bytes, at, limit, 'will') : noProperties(at);
  if (fault) return { fault, from, end: -1 };
  const topicEnd = endOfText(bytes, from, limit);
  const end = topicEnd < 0 ? -1 : endOfField(bytes, topicEnd, limit);
  if (end < 0) return { fault: malformed, from, end };
  // A topic name, not a filter. In 3.1.1 the login check refuses it, like any topic that is not the device's own.
  const isName = !isV5 || (topicEnd > from + 2 && !hasWildcard(bytes, from + 2, topicEnd));
  return { fault: isName ? 0 : reason.topicInvalid, from, end };
}

const sessionOf = (values: ReadonlyMap<number, number>) => ({
  maxPacketBytes: values.get(property.maximumPacketSize) ?? Infinity,
  wantsProblems: values.get(property.requestProblemInformation) !== 0,
  expirySeconds: values.get(property.sessionExpiry) ?? 0,
});
