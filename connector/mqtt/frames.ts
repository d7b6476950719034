import {
  endOfText,
  type Frame,
  hasWildcard,
  noProperties,
  property,
  readProperties,
  reason,
} from './v5.ts';

/** The longest filter that is granted, in bytes. */
export const maxFilterLength = 256;
/** In a SUBSCRIBE a filter has two bytes of length before it and its QoS after it. */
const filterOverhead = 3;
/** The size of a filter list with as many filters as a connection may have. */
export const maxFilterBytes = (maxSubscriptions: number): number =>
  maxSubscriptions * (maxFilterLength + filterOverhead);

/** This many bytes of filters count as a packet: each filter is checked, and may cause answers. */
const bytesCountedAsPacket = 25;

type FrameLimits = {
  maxConnectBytes: number;
  maxPacketBytes: number;
  maxMeasurementPacketBytes: number | null;
  maxSubscriptions: number;
};

/**
 * Follows the packet boundaries in a connection's bytes without keeping the bytes. So a packet that is too large or not
 * allowed ends the connection before a parser has stored it.
 */
export class FrameScanner {
  /** Packets that began in the last chunk. */
  publishes = 0;
  others = 0;
  /** What the others count as: one each, and more for long filter lists. */
  otherUnits = 0;
  /** Whether the bytes so far end with a whole packet. */
  isBetween = true;
  /** Bytes of a packet that has begun and not ended; a parser keeps them. */
  begunBytes = 0;
  /** The length of that packet with its fixed header, once it is known. */
  wholeBytes = 0;
  /** Whether that packet is larger than others may be: measurements, of which only the head has been taken so far. */
  isLarge = false;
  /** The chunk was taken only to the end of such a packet's topic: its body has to wait for room. */
  beganLarge = false;
  /** Set once the CONNECT has been read. */
  isV5 = false;
  /** Nothing more is taken: the client sent DISCONNECT, or the connection is broken. */
  isOver = false;
  /** The client broke the protocol or a limit. `fault` is the reason code of MQTT 5. */
  isBroken = false;
  fault: number = reason.malformed;
  #expects: 'type' | 'length' | 'topic' | 'body' = 'type';
  #type = 0;
  #lengths: Lengths | undefined = undefined;
  #length = 0;
  #lengthBytes = 0;
  #bodyLeft = 0;
  #topic = '';
  #topicBytes = 0;
  #isConnected = false;

  /**
   * How many bytes of `chunk` may be taken. That is up to
   * - the end of the `maxPackets`th packet that ends in the chunk, wherever it began,
   * - the end of a CONNECT, because its answer decides about what follows,
   * - the body of a large packet, or
   * - the start of a packet that breaks the protocol or a limit (`isBroken`).
   *
   * What follows a DISCONNECT is dropped [MQTT-3.14.4-1]. `largeTopic`: the topic whose packets may be large; null:
   * none.
   */
  advance(
    chunk: Uint8Array,
    maxPackets: number,
    limits: FrameLimits,
    largeTopic: string | null = null,
  ): number {
    this.publishes = 0;
    this.others = 0;
    this.otherUnits = 0;
    this.beganLarge = false;
    let at = 0;
    let ended = 0;
    /** Where the current packet begins; 0 if it began in an earlier chunk. */
    let from = 0;
    while (at < chunk.length && !this.isOver) {
      const byte = chunk[at] as number;
      switch (this.#expects) {
        case 'type':
          if (ended >= maxPackets) return this.#end(at);
          from = at;
          if (!this.#begin(byte)) return this.#break(from);
          at += 1;
          break;
        case 'length':
          if (!this.#readLength(byte, limits, largeTopic)) return this.#break(from);
          at += 1;
          break;
        case 'topic':
          if (!this.#readTopic(byte)) return this.#break(from);
          at += 1;
          if (this.beganLarge) return this.#end(at);
          break;
        case 'body': {
          const taken = Math.min(this.#bodyLeft, chunk.length - at);
          at += taken;
          this.#bodyLeft -= taken;
          if (this.#bodyLeft === 0) this.#expects = 'type';
          break;
        }
      }
      if (this.#expects !== 'type') continue;
      ended += 1;
      if (this.#type === connect) return this.#end(at);
      this.isOver = this.#type === disconnect;
    }
    return this.#end(at);
  }

  /** Takes nothing of the packet that breaks the connection. Those before it are valid. */
  #break(from: number): number {
    this.isOver = true;
    this.isBroken = true;
    this.#expects = 'type';
    return this.#end(from);
  }

  #end(at: number): number {
    this.isBetween = this.#expects === 'type';
    const headBytes = 1 + this.#lengthBytes;
    // The length is unknown until its last byte has arrived.
    const isKnown = this.#expects !== 'length';
    this.wholeBytes = isKnown ? headBytes + this.#length : 0;
    if (this.isBetween) this.begunBytes = 0;
    else this.begunBytes = isKnown ? this.wholeBytes - this.#bodyLeft : headBytes;
    if (this.isBetween) this.isLarge = false;
    return at;
  }

  #begin(byte: number): boolean {
    this.#type = byte >> 4;
    this.#length = 0;
    this.#lengthBytes = 0;
    this.isLarge = false;
    this.#expects = 'length';
    if (this.#type === publish) this.publishes += 1;
    else {
      this.others += 1;
      this.otherUnits += 1;
    }
    // The first packet is a CONNECT, and no other packet is. [MQTT-3.1.0-1] [MQTT-3.1.0-2]
    this.#lengths = (this.isV5 ? v5Lengths : v3Lengths)[this.#type];
    const isExpected = this.#isConnected ? this.#lengths !== undefined : this.#type === connect;
    if (!isExpected) this.fault = reason.protocolError;
    return isExpected;
  }

  #readLength(byte: number, limits: FrameLimits, largeTopic: string | null): boolean {
    this.#length += (byte & 127) * 128 ** this.#lengthBytes;
    this.#lengthBytes += 1;
    // At most four bytes, section 2.2.3.
    if (byte & 128) return this.#lengthBytes < 4;
    const total = 1 + this.#lengthBytes + this.#length;
    const isTooLarge = total > this.#mostBytes(limits);
    const mayBeLarge = this.#type === publish && largeTopic !== null;
    if (isTooLarge && !(mayBeLarge && total <= (limits.maxMeasurementPacketBytes ?? 0)))
      return this.#isTooLarge();
    // A CONNECT has no entry here; `checkConnect` finds what is wrong with it.
    const [least, greatest] = this.#lengths ?? anyLength;
    if (this.#length < least || this.#length > greatest) return false;
    this.#isConnected = true;
    if (this.#type !== publish && (this.isV5 || isOfFilters(this.#type)))
      this.otherUnits += Math.floor(this.#length / bytesCountedAsPacket);
    this.#bodyLeft = this.#length;
    this.#expects = this.#length === 0 ? 'type' : 'body';
    if (isTooLarge) this.#expectTopic(largeTopic ?? '');
    return true;
  }

  #isTooLarge(): false {
    this.fault = reason.tooLarge;
    return false;
  }

  #expectTopic(topic: string): void {
    this.#topic = topic;
    this.#topicBytes = 0;
    this.#expects = 'topic';
  }

  /** Compares a topic byte by byte. It begins with two bytes of length; the expected topic is ASCII. */
  #readTopic(byte: number): boolean {
    const { length } = this.#topic;
    const at = this.#topicBytes;
    const expected =
      at < 2 ? (at === 0 ? length >> 8 : length & 255) : this.#topic.charCodeAt(at - 2);
    // Only the uuid may be in capitals; its letters are a to f.
    const isCapital = byte >= 0x41 && byte <= 0x46 && at >= uuidAt && at < uuidAt + uuidBytes;
    if ((isCapital ? byte + 0x20 : byte) !== expected) return this.#isTooLarge();
    this.#topicBytes += 1;
    this.#bodyLeft -= 1;
    if (at < length + 1) return true;
    this.#expects = 'body';
    this.isLarge = true;
    this.beganLarge = true;
    return true;
  }

  /** A filter list has room for as many filters as a connection may have. More would be refused one by one. */
  #mostBytes(limits: FrameLimits): number {
    if (this.#type === publish) return limits.maxPacketBytes;
    if (this.#type === connect) return limits.maxConnectBytes;
    // In MQTT 5 properties precede the list; `checkFilters` measures the list.
    if (this.isV5 || !isOfFilters(this.#type)) return limits.maxPacketBytes;
    const filters = 16 + maxFilterBytes(limits.maxSubscriptions);
    return Math.min(filters, limits.maxPacketBytes);
  }
}

/** Where the uuid begins in a large packet's topic: after the length and `devices/`. */
const uuidAt = 2 + 8;
const uuidBytes = 36;

const anyLength: Lengths = [0, Infinity];

const isOfFilters = (type: number) => type === subscribe || type === unsubscribe;

// Control packet types, MQTT 3.1.1 section 2.2.1.
const connect = 1;
const publish = 3;
const subscribe = 8;
const unsubscribe = 10;
const disconnect = 14;

/** The smallest and greatest remaining length. */
type Lengths = readonly [number, number];

/** By type, what a client of MQTT 3 may send once it is connected. */
const v3Lengths: Partial<Record<number, Lengths>> = {
  3: [2, Infinity],
  4: [2, 2],
  5: [2, 2],
  6: [2, 2],
  7: [2, 2],
  8: [2, Infinity],
  10: [2, Infinity],
  12: [0, 0],
  14: [0, 0],
};

/** The same for MQTT 5: acknowledgements and DISCONNECT may have reason codes and properties. */
const v5Lengths: typeof v3Lengths = {
  ...v3Lengths,
  4: [2, Infinity],
  5: [2, Infinity],
  6: [2, Infinity],
  7: [2, Infinity],
  14: [0, Infinity],
};

const nothing = Buffer.alloc(0);

/**
 * Joins the parts of a packet until it is whole. Parsers that keep a list of parts search it from the front for each
 * byte, so a packet that arrives byte by byte would take time in the square of its length.
 */
export class PacketBuffer {
  #bytes = nothing;
  #length = 0;

  /**
   * The bytes that are whole with `chunk`, in one piece; null: none yet. `begunBytes`: how many of the bytes so far
   * belong to a packet that has not ended; `wholeBytes`: how many that packet will have, once known.
   */
  take(chunk: Buffer, begunBytes: number, wholeBytes: number): Buffer | null {
    const length = this.#length + chunk.length;
    if (this.#length === 0 && begunBytes === 0) return chunk;
    if (begunBytes === length) {
      this.#append(chunk, wholeBytes);
      return null;
    }
    const all =
      this.#length === 0 ? chunk : Buffer.concat([this.#bytes.subarray(0, this.#length), chunk]);
    this.#bytes = nothing;
    this.#length = 0;
    if (begunBytes > 0) this.#append(all.subarray(length - begunBytes), wholeBytes);
    return all.subarray(0, length - begunBytes);
  }

  #append(chunk: Buffer, wholeBytes: number): void {
    const length = this.#length + chunk.length;
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(
        Math.max(length, Math.min(2 * this.#bytes.length, wholeBytes)),
      );
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    chunk.copy(this.#bytes, this.#length);
    this.#length = length;
  }
}

/** A PUBLISH of QoS 0 or 1, MQTT 3.1.1 and MQTT 5 section 3.3. */
type PublishFrame = {
  topic: string;
  qos: 0 | 1;
  /** 0 for QoS 0. */
  messageId: number;
  payload: Buffer;
  /** Where the next packet begins. */
  end: number;
};

/**
 * Reads the packet that begins at `at`; null unless it is a whole, plain PUBLISH below `prefix`. Nearly all packets
 * are, and a full check of each part would cost more than everything that is done with the message afterwards. Anything
 * unusual is left to `readWholePublish`. In MQTT 5 properties and RETAIN are unusual.
 */
export function readPublish(
  chunk: Buffer,
  at: number,
  prefix: string,
  isV5: boolean,
): PublishFrame | null {
  // PUBLISH with or without DUP and RETAIN; at QoS 0 DUP must not be set. [MQTT-3.3.1-2]
  const flags = (chunk[at] as number) ^ 0x30;
  const qos = (flags >> 1) & 3;
  if (flags > 0x0f || qos > 1 || (qos === 0 && flags & 8) || (isV5 && flags & 1)) return null;
  let next = at + 1;
  let length = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = chunk[next++];
    if (byte === undefined || shift > 21) return null;
    length |= (byte & 127) << shift;
    if (byte < 128) break;
  }
  const end = next + length;
  const topicEnd = next + 2 + (((chunk[next] as number) << 8) | (chunk[next + 1] as number));
  const idEnd = qos === 0 ? topicEnd : topicEnd + 2;
  if (end > chunk.length || idEnd > end) return null;
  if (isV5 && (idEnd === end || chunk[idEnd] !== 0)) return null;
  const messageId =
    qos === 0 ? 0 : ((chunk[topicEnd] as number) << 8) | (chunk[topicEnd + 1] as number);
  // [MQTT-2.3.1-1]
  if (qos === 1 && messageId === 0) return null;
  const topic = chunk.toString('utf8', next + 2, topicEnd);
  if (!topic.startsWith(prefix)) return null;
  const payload = chunk.subarray(isV5 ? idEnd + 1 : idEnd, end);
  return { topic, qos: qos as 0 | 1, messageId, payload, end };
}

/** A PUBLISH, section 3.3. `fault`: the reason code that ends its connection, or 0. */
type WholePublish = {
  fault: number;
  topic: string;
  qos: number;
  /** 0 for QoS 0. */
  messageId: number;
  payload: Buffer;
  /** The length of its properties. */
  propertyBytes: number;
};

function refused(fault: number): WholePublish {
  return { fault, topic: '', qos: 0, messageId: 0, payload: nothing, propertyBytes: 0 };
}

/** Reads a whole PUBLISH of either version. Properties are only checked: nobody is sent what a device publishes. */
export function readWholePublish(
  bytes: Buffer,
  { flags, start, end }: Frame,
  isV5: boolean,
): WholePublish {
  const qos = (flags >> 1) & 3;
  // [MQTT-3.3.1-2] [MQTT-3.3.1-4]
  if (qos === 3 || (qos === 0 && flags & 8)) return refused(reason.malformed);
  // The CONNACK of MQTT 5 says that nothing is retained, section 3.2.2.3.5. That of 3.1.1 cannot.
  if (isV5 && flags & 1) return refused(reason.retainNotSupported);
  const topicEnd = endOfText(bytes, start, end);
  const idEnd = qos === 0 ? topicEnd : topicEnd + 2;
  if (topicEnd < 0 || idEnd > end) return refused(reason.malformed);
  const messageId =
    qos === 0 ? 0 : ((bytes[topicEnd] as number) << 8) | (bytes[topicEnd + 1] as number);
  // [MQTT-2.3.1-1], in MQTT 5 [MQTT-2.2.1-3]
  if (qos > 0 && messageId === 0) return refused(reason.protocolError);
  const properties = isV5 ? readProperties(bytes, idEnd, end, 'publish') : noProperties(idEnd);
  if (properties.fault) return refused(properties.fault);
  // The CONNACK says that there are no topic aliases. [MQTT-3.3.2-9]
  if (properties.values.has(property.topicAlias)) return refused(reason.topicAliasInvalid);
  // [MQTT-4.7.3-1], and in MQTT 5 section 3.3.2.1: without an alias there is a topic.
  if (topicEnd === start + 2) return refused(reason.protocolError);
  // [MQTT-3.3.2-2]
  if (hasWildcard(bytes, start + 2, topicEnd)) return refused(reason.topicInvalid);
  return {
    fault: 0,
    topic: bytes.toString('utf8', start + 2, topicEnd),
    qos,
    messageId,
    payload: bytes.subarray(properties.end, end),
    propertyBytes: Math.max(0, properties.end - idEnd - 1),
  };
}
