/**
 * The few MQTT 3.1.1 packets that a load client sends, and their MQTT 5 forms (without properties), encoded by hand: a
 * client library costs more than the broker that it should measure.
 */

const disconnectPacket = Buffer.from([0xe0, 0]);
const pingPacket = Buffer.from([0xc0, 0]);

export type ConnectFields = {
  clientId: string;
  username?: string | undefined;
  password?: string | undefined;
  /** Seconds; 0 turns it off. */
  keepaliveSeconds: number;
  /** Absent: MQTT 3.1.1. */
  version?: 5 | undefined;
};

/** An empty list of properties; MQTT 3.1.1 has none. */
const propertiesOf = (version: 5 | undefined) => Buffer.alloc(version === 5 ? 1 : 0);

/** MQTT 3.1.1, section 3.1, always with a clean session. */
export function encodeConnect({
  clientId,
  username,
  password,
  keepaliveSeconds,
  version,
}: ConnectFields): Buffer {
  const flags = 0x02 | (username === undefined ? 0 : 0x80) | (password === undefined ? 0 : 0x40);
  const fields = [clientId, username, password].filter((field) => field !== undefined);
  return packetOf(0x10, [
    Buffer.from([0, 4, 0x4d, 0x51, 0x54, 0x54, version ?? 4, flags]),
    Buffer.from([keepaliveSeconds >> 8, keepaliveSeconds & 0xff]),
    propertiesOf(version),
    ...fields.map(encodeString),
  ]);
}

/** The most bytes that a PUBLISH takes. */
export function publishRoom(topic: Buffer, payload: Buffer | string): number {
  return 1 + 4 + topic.length + 2 + 1 + 3 * payload.length;
}

/**
 * Section 3.3, QoS 1, written at `at`; returns the offset after it. `topic` comes from `encodeString`, so that it is
 * encoded once per device. See `markRedelivered` for DUP.
 */
export function writePublish(
  target: Buffer,
  at: number,
  topic: Buffer,
  packetId: number,
  payload: Buffer | string,
  version?: 5,
): number {
  const propertyBytes = version === 5 ? 1 : 0;
  const payloadLength =
    typeof payload === 'string' ? Buffer.byteLength(payload, 'utf8') : payload.length;
  target[at] = 0x32;
  let end = writeLength(target, at + 1, topic.length + 2 + propertyBytes + payloadLength);
  end += topic.copy(target, end);
  end = target.writeUInt16BE(packetId, end);
  if (propertyBytes > 0) target[end++] = 0;
  if (typeof payload === 'string') target.write(payload, end, 'utf8');
  else payload.copy(target, end);
  return end + payloadLength;
}

/** [MQTT-3.3.1-1]: marks a redelivered PUBLISH. */
export function markRedelivered(publish: Buffer): Buffer {
  publish[0] = (publish[0] ?? 0) | 0x08;
  return publish;
}

/** Section 3.8. */
export function encodeSubscribe(
  packetId: number,
  filters: string[],
  qos: 0 | 1,
  version?: 5,
): Buffer {
  return packetOf(0x82, [
    Buffer.from([packetId >> 8, packetId & 0xff]),
    propertiesOf(version),
    ...filters.flatMap((filter) => [encodeString(filter), Buffer.from([qos])]),
  ]);
}

/** Section 3.4. */
export function encodePuback(packetId: number): Buffer {
  return Buffer.from([0x40, 2, packetId >> 8, packetId & 0xff]);
}

/** Section 3.12. */
export function pingRequest(): Buffer {
  return pingPacket;
}

/** Section 3.14. */
export function disconnectNotice(): Buffer {
  return disconnectPacket;
}

/** Section 1.5.3: two bytes of length, then UTF-8. */
export function encodeString(text: string): Buffer {
  const bytes = Buffer.from(text, 'utf8');
  return Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 0xff]), bytes]);
}

/** Section 2.1: the first byte, the length of the rest, and the rest. */
export function packetOf(header: number, parts: Buffer[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const head = Buffer.alloc(5);
  head[0] = header;
  return Buffer.concat([head.subarray(0, writeLength(head, 1, length)), ...parts]);
}

/** Section 2.2.3; returns the offset after what it wrote. */
function writeLength(target: Buffer, offset: number, length: number): number {
  let at = offset;
  let rest = length;
  do {
    const digit = rest % 128;
    rest = Math.floor(rest / 128);
    target[at++] = rest > 0 ? digit | 0x80 : digit;
  } while (rest > 0);
  return at;
}
