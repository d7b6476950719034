import type { Duplex } from 'node:stream';
import type { Client, ConnectPacket } from 'aedes';
import type { DeviceIdentity, DownTopic, Outcome } from '../../src/contract/uplink.ts';
import type { Bucket, DeviceRates } from '../device/rates.ts';
import type { DownlinkQueue } from '../device/downlinks.ts';
import type { LargePlace } from '../device/uplink.ts';
import { FrameScanner, type PacketBuffer } from './frames.ts';
import { disconnect, disconnectCodes } from './v5.ts';
import type { Admitted } from './admission.ts';
import type { ConnectionEnding, ConnectionRefusal, DeviceLogin } from '../ports.ts';
import type { V5Session } from './connect-packet.ts';
import type { MonotonicMs } from '../../src/lib/clock-readings.ts';

/** What the devices of an account that are connected here have in common. */
export type AccountConnections = {
  readonly id: number;
  /** Devices that are remembered here. */
  devices: number;
  /** Those of its connections that were let in. */
  connections: number;
  /** What its messages that wait for their commit take of the memory, about. */
  bytes: number;
  /** The same of those that are not under way, as the account has to wait (`AccountBackpressure`). */
  parkedBytes: number;
  /** Connections that are not read until there is room for their messages. */
  waiting: Set<Connection>;
  /** Connections that are not read while the account is beyond its rate, and the timer that ends it. */
  paused: Set<Connection>;
  timer: NodeJS.Timeout | null;
};

/** A device with all its connections to this process. */
export type Device = {
  identity: DeviceIdentity;
  account: AccountConnections;
  upPrefix: string;
  downPrefix: string;
  /** Where its packets may be large. */
  largeTopic: string;
  /** Oldest first. */
  connections: Connection[];
  rates: DeviceRates;
  /** Its connections that were let in. */
  connects: Bucket;
  /** When a rejection last said why it is not let in. */
  noticedMs: number;
  /** When a connection last took another one's session over. */
  takenOverMs: number;
  /** When it was last told that something was read of it. */
  toldMs: number;
  /** Set while its connections wait for a bucket. */
  timer: NodeJS.Timeout | null;
};

/** What is kept of a PUBLISH until it is stored, and acknowledged in its turn. */
export type UnackedPublish = {
  /** 0: nobody will send it again. */
  readonly qos: number;
  readonly messageId: number;
  /** About what it takes of the memory until it is stored. */
  readonly bytes: number;
  /** When it arrived; `Infinity` while its account has to wait. */
  sinceMs: number;
  isStored: boolean;
  /** Of a client of MQTT 5: what became of its items, once that is known. */
  outcome?: Outcome | null;
};

/** An acknowledgement that is not written yet: the identifier of a PUBACK that says no more, or a whole packet. */
export type Ack = number | Buffer;

/** A message towards the device that waits for its PUBACK. */
export type Sent = {
  messageId: number;
  topic: string;
  sinceMs: number;
  finish: (error: Error | null) => void;
};

export type Subscription = {
  filter: string;
  qos: number;
  topics: DownTopic[];
  /** The device's `downPrefix` as its filter spells it: what it is sent fits that [MQTT-4.7.0-1]. */
  prefix: string;
};

type Will = NonNullable<ConnectPacket['will']>;

/** A packet that is larger than others may be, from the end of its topic until it is whole. */
export type LargePacket = {
  place: LargePlace;
  /** Since when it has room; `Infinity` while it waits for that. */
  sinceMs: number;
};

/** For a DISCONNECT to be sent. */
const longestFarewellMs = 1_000;

/** One network connection, from its first byte to its last. Ten thousand of them have to be cheap. */
export class Connection {
  /** No two are alike, over all processes. It is the client identifier that aedes gets to see. */
  readonly id: string;
  readonly socket: Duplex;
  readonly entry: Admitted;
  readonly scanner = new FrameScanner();
  client: Client | null = null;
  /** Whether it waits for its turn to be read, or has it; null: it did not have to wait. */
  turn: 'waits' | 'now' | null = null;
  stage: 'opening' | 'authenticating' | 'ready' | 'closed' = 'opening';
  ending: ConnectionEnding | null = null;
  /** It is about to be closed for what it sent. */
  isBroken = false;
  /** It said DISCONNECT: it sends nothing again. */
  hasLeft = false;
  refusal: ConnectionRefusal | null = null;

  /** Null: it speaks MQTT 3.1.1, or 3.1. */
  v5: V5Session | null = null;
  /** Null while no packet has begun and not ended. */
  packets: PacketBuffer | null = null;
  isWebSocket = false;

  /** The device's own client identifier; '' where it gave none. */
  clientId = '';
  credentials: DeviceLogin | null = null;
  device: Device | null = null;
  will: Will | null = null;
  keepaliveMs = 0;
  /** No identifier, and yet a session that should outlive it. */
  needsIdentifier = false;
  /** Its last packet is on its way. */
  #isLeaving = false;
  /** When it last sent something, or was last not listened to. */
  heardMs: number;
  /** Access changed while it was being checked. */
  isDoubtful = false;

  /** In the order in which they came, and are acknowledged. */
  unacked: UnackedPublish[] = [];
  unackedBytes = 0;
  /** Of a packet that has not ended yet, unless it is a large one. */
  begunBytes = 0;
  /** A message of measurements that is larger than other packets may be, and is not whole yet. */
  large: LargePacket | null = null;
  /** It has, or may have, something to read that it was not asked for. */
  isStarved = false;
  /** Of messages that are stored; written once the connection is read empty. */
  pubacks: Ack[] = [];
  /** Since when the first of them waits. */
  pubacksSinceMs = 0;
  /** Something came of it since that was last asked. */
  hasRead = false;
  /** Since when its socket takes no more bytes. */
  blockedSinceMs: number | null = null;
  /** Message identifiers of QoS 2 between PUBLISH and PUBREL. */
  unreleased: Set<number> | null = null;
  /**
   * What need not be stored any more: once it is gone, what the device will send again and would be stored twice
   * then; where the store is away for too long, all.
   */
  withdrawn: 'nothing' | 'resendable' | 'all' = 'nothing';

  /** Whoever reads it: null before its first byte. */
  reader: { resume(connection: Connection): void } | null = null;

  subscriptions: Subscription[] = [];
  downlinks: DownlinkQueue | null = null;
  sent: Sent | null = null;
  lastMessageId = 0;

  constructor(id: string, socket: Duplex, entry: Admitted, monotonicMs: MonotonicMs) {
    this.id = id;
    this.socket = socket;
    this.entry = entry;
    this.heardMs = monotonicMs;
  }

  /** The first reason given is the one that counts. `code`: the reason code for a client of MQTT 5. */
  close(reason: ConnectionEnding, code: number = disconnectCodes[reason]): void {
    if (this.#isLeaving) return;
    const isEnding = this.ending !== null;
    this.ending ??= reason;
    if (isEnding || !this.v5 || this.stage !== 'ready' || code === 0) this.socket.destroy();
    else this.leave(reason, disconnect(code));
  }

  /**
   * Reads nothing more, and closes once what was read before has been dealt with: a packet that may not be is no
   * reason to lose those in front of it, in however many pieces they came.
   */
  breakOff(reason: ConnectionEnding, code?: number): void {
    if (this.isBroken) return;
    this.isBroken = true;
    setImmediate(() => this.close(reason, code));
  }

  /** Closes with a last packet. One that does not read would not read this either. Sections 3.14.4 and 4.13. */
  leave(reason: ConnectionEnding, farewell: Buffer): void {
    this.ending ??= reason;
    this.#isLeaving = true;
    const { socket } = this;
    if (socket.writableNeedDrain || !socket.writable) return void socket.destroy();
    const timer = setTimeout(() => socket.destroy(), longestFarewellMs);
    socket.end(farewell, () => {
      clearTimeout(timer);
      socket.destroy();
    });
  }

  /** It may be read again, if nothing else holds it back. */
  resume(): void {
    if (this.isStarved) this.reader?.resume(this);
  }
}

const link = Symbol('connection');
type Linked = { [link]?: Connection };

/** Lets what knows only the socket find its connection. */
export function linkConnection(connection: Connection): void {
  (connection.socket as Linked)[link] = connection;
}

export function findConnection(client: Client | null): Connection | null {
  return (client?.conn as Linked | undefined)?.[link] ?? null;
}
