import {
  connect,
  disconnect,
  publish,
  subscribe,
  unsubscribe,
  v3Lengths,
  v5Lengths,
} from './frame-lengths.ts';
import type { Lengths } from './frame-lengths.ts';
import { reason } from './reason-codes.ts';

/** Longest filter that is granted, in bytes. */
export const maxFilterLength = 256;
/** Of a filter in a SUBSCRIBE: its length before it, its QoS behind it. */
const filterOverhead = 3;
/** What a list of filters takes that has as many as a connection may subscribe to. */
export const maxFilterBytes = (maxSubscriptions: number): number =>
  maxSubscriptions * (maxFilterLength + filterOverhead);

/** So many bytes of filters count as a packet: each filter is looked at, and may bring answers. */
const bytesCountedAsPacket = 25;

export type FrameLimits = {
  maxConnectBytes: number;
  maxPacketBytes: number;
  maxMeasurementPacketBytes: number | null;
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
  /** The length of that packet with its fixed header, as soon as it is known. */
  wholeBytes = 0;
  /** Whether that packet is larger than others may be: measurements, of which only the head was taken so far. */
  isLarge = false;
  /** The chunk ended where such a packet's topic does: its body needs room. */
  beganLarge = false;
  /** Set once its CONNECT is read. */
  isV5 = false;
  /** Nothing more is taken: its client has said DISCONNECT, or it is broken. */
  isOver = false;
  /** It breaks the protocol or a limit: `fault` is the reason code of MQTT 5. */
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
   * How many bytes of `chunk` may be taken: up to the end of the `maxPackets`th packet that ends in it, wherever that
   * began; to the end of a CONNECT, as its answer decides about what follows; or to the body of a large packet. Where
   * the connection breaks the protocol or a limit (`isBroken`), up to the packet that does. What follows a
   * DISCONNECT is dropped [MQTT-3.14.4-1]. `largeTopic`: where packets may be large; null: nowhere.
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
    /** Where the packet begins that is being read; 0 for one that began in an earlier chunk. */
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

  /** Of the packet that breaks the connection nothing is taken; those before it were sent in good order. */
  #break(from: number): number {
    this.isOver = true;
    this.isBroken = true;
    this.#expects = 'type';
    return this.#end(from);
  }

  #end(at: number): number {
    this.isBetween = this.#expects === 'type';
    const headBytes = 1 + this.#lengthBytes;
    // A length of several bytes says nothing until its last one has come.
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
    // The first packet is CONNECT and no other one is. [MQTT-3.1.0-1] [MQTT-3.1.0-2]
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
    // A CONNECT has none: where it is read says what is wrong with it.
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

  /** A topic begins with its length, of two bytes; the one that is expected is ASCII. */
  #readTopic(byte: number): boolean {
    const { length } = this.#topic;
    const at = this.#topicBytes;
    const expected =
      at < 2 ? (at === 0 ? length >> 8 : length & 255) : this.#topic.charCodeAt(at - 2);
    // A uuid may be in capitals, and no other part: all letters in it are a to f.
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

  /** A list of filters has room for all that a connection may have; more would be refused one by one. */
  #mostBytes(limits: FrameLimits): number {
    if (this.#type === publish) return limits.maxPacketBytes;
    if (this.#type === connect) return limits.maxConnectBytes;
    // With properties in front of it, the list is measured where they are read.
    if (this.isV5 || !isOfFilters(this.#type)) return limits.maxPacketBytes;
    const filters = 16 + maxFilterBytes(limits.maxSubscriptions);
    return Math.min(filters, limits.maxPacketBytes);
  }
}

/** Where the uuid stands in a large packet's topic, behind its length and `devices/`. */
const uuidAt = 2 + 8;
const uuidBytes = 36;

const anyLength: Lengths = [0, Infinity];

const isOfFilters = (type: number) => type === subscribe || type === unsubscribe;
