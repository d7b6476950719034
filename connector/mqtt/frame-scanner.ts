import { reason } from './reason-codes.ts';

// Control packet types, MQTT 3.1.1 section 2.2.1.
const connect = 1;
const publish = 3;
const subscribe = 8;
const unsubscribe = 10;

/** Longest filter that is granted, in bytes. */
export const maxFilterLength = 256;
/** Of a filter in a SUBSCRIBE: its length before it, its QoS behind it. */
const filterOverhead = 3;
/** What a list of filters takes that has as many as a connection may subscribe to. */
export const maxFilterBytes = (maxSubscriptions: number): number =>
  maxSubscriptions * (maxFilterLength + filterOverhead);

/** So many bytes of filters count as a packet: each filter is looked at, and may bring answers. */
const bytesCountedAsPacket = 25;

/** Least and greatest remaining length of what a client of MQTT 3 may send once it is connected. */
const lengths: Partial<Record<number, [number, number]>> = {
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

/** Of MQTT 5: acknowledgements and DISCONNECT may have reason codes and properties. */
const v5Lengths: typeof lengths = {
  ...lengths,
  4: [2, Infinity],
  5: [2, Infinity],
  6: [2, Infinity],
  7: [2, Infinity],
  14: [0, Infinity],
};

export type FrameLimits = {
  maxConnectBytes: number;
  maxPacketBytes: number;
  maxSubscriptions: number;
};

/**
 * Follows the packets in a connection's bytes without keeping any, so that a packet too large, or
 * one that has no business there, ends the connection before a parser has stored it.
 */
export class FrameScanner {
  /** Packets that began in the last chunk. */
  publishes = 0;
  others = 0;
  /** What the others count as: one each, and more where they are long lists of filters. */
  otherUnits = 0;
  /** Whether the bytes so far end with a whole packet. */
  isBetween = true;
  /** Bytes of a packet that has begun and not ended: a parser keeps them. */
  begunBytes = 0;
  /** Set once its CONNECT is read. */
  isV5 = false;
  /** Where the connection breaks the protocol or a limit: the reason code of MQTT 5. */
  fault: number = reason.malformed;
  #expects: 'type' | 'length' | 'body' = 'type';
  #type = 0;
  #length = 0;
  #lengthBytes = 0;
  #bodyLeft = 0;
  #isConnected = false;

  /**
   * How many bytes of `chunk` may be taken: up to where the packet after `maxPackets` begins.
   * -1: nothing, the connection breaks the protocol or a limit.
   */
  advance(chunk: Uint8Array, maxPackets: number, limits: FrameLimits): number {
    this.publishes = 0;
    this.others = 0;
    this.otherUnits = 0;
    let at = 0;
    while (at < chunk.length) {
      switch (this.#expects) {
        case 'type':
          if (this.publishes + this.others >= maxPackets) return this.#end(at);
          if (!this.#begin(chunk[at++] as number)) return -1;
          break;
        case 'length':
          if (!this.#readLength(chunk[at++] as number, limits)) return -1;
          break;
        case 'body': {
          const taken = Math.min(this.#bodyLeft, chunk.length - at);
          at += taken;
          this.#bodyLeft -= taken;
          if (this.#bodyLeft === 0) this.#expects = 'type';
          break;
        }
      }
    }
    return this.#end(at);
  }

  #end(at: number): number {
    this.isBetween = this.#expects === 'type';
    const begun = 1 + this.#lengthBytes + this.#length - this.#bodyLeft;
    this.begunBytes = this.isBetween ? 0 : begun;
    return at;
  }

  #begin(byte: number): boolean {
    this.#type = byte >> 4;
    this.#length = 0;
    this.#lengthBytes = 0;
    this.#expects = 'length';
    if (this.#type === publish) this.publishes += 1;
    else {
      this.others += 1;
      this.otherUnits += 1;
    }
    // The first packet is CONNECT and no other one is. [MQTT-3.1.0-1] [MQTT-3.1.0-2]
    const isExpected = this.#isConnected
      ? this.#lengths[this.#type] !== undefined
      : this.#type === connect;
    if (!isExpected) this.fault = reason.protocolError;
    return isExpected;
  }

  #readLength(byte: number, limits: FrameLimits): boolean {
    this.#length += (byte & 127) * 128 ** this.#lengthBytes;
    this.#lengthBytes += 1;
    // At most four bytes, section 2.2.3.
    if (byte & 128) return this.#lengthBytes < 4;
    const total = 1 + this.#lengthBytes + this.#length;
    if (total > this.#mostBytes(limits)) {
      this.fault = reason.tooLarge;
      return false;
    }
    const [least, greatest] = this.#lengths[this.#type] ?? [0, Infinity];
    if (this.#length < least || this.#length > greatest) return false;
    this.#isConnected = true;
    if (isOfFilters(this.#type) || (this.isV5 && this.#type !== publish))
      this.otherUnits += Math.floor(this.#length / bytesCountedAsPacket);
    this.#bodyLeft = this.#length;
    this.#expects = this.#length === 0 ? 'type' : 'body';
    return true;
  }

  get #lengths(): typeof lengths {
    return this.isV5 ? v5Lengths : lengths;
  }

  /** A list of filters has room for all that a connection may have; more would be refused one by one. */
  #mostBytes(limits: FrameLimits): number {
    if (this.#type === connect) return limits.maxConnectBytes;
    // With properties in front of it, the list is measured where they are read.
    if (this.isV5 || !isOfFilters(this.#type)) return limits.maxPacketBytes;
    const filters = 16 + maxFilterBytes(limits.maxSubscriptions);
    return Math.min(filters, limits.maxPacketBytes);
  }
}

const isOfFilters = (type: number) => type === subscribe || type === unsubscribe;
