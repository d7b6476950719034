import type { Duplex } from 'node:stream';
import type { Client, ConnectPacket } from 'aedes';
import type { DeviceIdentity, DownTopic, Outcome } from '../../src/contract/uplink.ts';
import type { TokenBucket } from '../../src/lib/token-bucket.ts';
import type { DeviceRates } from '../device/limits.ts';
import type { DownlinkQueue } from '../device/downlinks.ts';
import type { LargePlace } from '../device/large-messages.ts';
import { FrameScanner, type PacketBuffer } from './frames.ts';
import { disconnect, disconnectCodes } from './v5.ts';
import type { Admitted } from './admission.ts';
import type { ConnectionEnding, ConnectionRefusal, DeviceLogin } from '../ports.ts';
import type { V5Session } from './connect-packet.ts';
import type { MonotonicMs } from '../../src/lib/clock-readings.ts';

/** What the connections of an account's devices to this process share. */
export type AccountConnections = {
  readonly id: number;
  /** Devices of the account that are remembered here. */
  devices: number;
  /** Connections that were let in. */
  connections: number;
  /** About how much memory its messages take while they wait for their commit. */
  bytes: number;
  /** The same for messages that are parked because the account has to wait (`AccountBackpressure`). */
  parkedBytes: number;
  /** Connections that are not read until there is room for their messages. */
  waiting: Set<Connection>;
  /** Connections that are not read while the account is beyond its rate, and the timer that reads them again. */
  paused: Set<Connection>;
  timer: NodeJS.Timeout | null;
};

/** A device with all its connections to this process. */
export type Device = {
  identity: DeviceIdentity;
  account: AccountConnections;
  upPrefix: string;
  downPrefix: string;
  /** The topic whose packets may be large. */
  largeTopic: string;
  /** Oldest first. */
  connections: Connection[];
  rates: DeviceRates;
  /** Limits how often its connections are let in. */
  connects: TokenBucket;
  /** When a rejection last reported why it was not let in. */
  noticedMs: number;
  /** When a connection last took over another one's session. */
  takenOverMs: number;
  /** When `presence` was last told that the device sent something. */
  seenReportedMs: number;
  /** Set while its connections wait for the device's rates. */
  timer: NodeJS.Timeout | null;
};

/** What is kept of a PUBLISH until it is stored and acknowledged in order. */
export type UnackedPublish = {
  /** With QoS 0 nobody sends it again. */
  readonly qos: number;
  readonly messageId: number;
  /** About how much memory it takes until it is stored. */
  readonly bytes: number;
  /** When it arrived; `Infinity` while its account has to wait. */
  sinceMs: number;
  isStored: boolean;
  /** Its connection's `withdrawn` has changed: decides whether the message still needs to be stored. */
  withdraw(): void;
  /** For a client of MQTT 5: what became of its items, once that is known. */
  outcome?: Outcome | null;
};

/** An acknowledgement that is not written yet: the identifier of a plain PUBACK, or a whole packet. */
export type Ack = number | Buffer;

/** A message to the device that waits for its PUBACK. */
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
  /** The device's `downPrefix` as spelled in its filter: topics sent to it have to match that [MQTT-4.7.0-1]. */
  prefix: string;
};

type Will = NonNullable<ConnectPacket['will']>;

/** A packet that is larger than others may be, from the end of its topic until it is whole. */
export type LargePacket = {
  place: LargePlace;
  /** Since when it has room; `Infinity` while it waits for room. */
  sinceMs: number;
};

/** How long a DISCONNECT may take to leave. */
const longestFarewellMs = 1_000;

/** One network connection, from its first byte to its last. Keep it small: there may be ten thousand. */
export class Connection {
  /** Unique over all processes. aedes gets it as the client identifier. */
  readonly id: string;
  readonly socket: Duplex;
  readonly entry: Admitted;
  readonly scanner = new FrameScanner();
  client: Client | null = null;
  /** Whether the connection waits for its turn to be read, or has it; null: it did not have to wait. */
  readTurn: 'waits' | 'now' | null = null;
  stage: 'opening' | 'authenticating' | 'ready' | 'closed' = 'opening';
  ending: ConnectionEnding | null = null;
  /** It is about to be closed because of what it sent. */
  isBroken = false;
  /** It sent DISCONNECT, so it will not send anything again. */
  hasLeft = false;
  refusal: ConnectionRefusal | null = null;

  /** Null for MQTT 3.1.1 and 3.1. */
  v5: V5Session | null = null;
  /** Null unless a packet has begun and not ended. */
  packets: PacketBuffer | null = null;
  isWebSocket = false;

  /** The device's own client identifier; '' if it gave none. */
  clientId = '';
  credentials: DeviceLogin | null = null;
  device: Device | null = null;
  will: Will | null = null;
  keepaliveMs = 0;
  /** It gave no identifier, and asks for a session that outlives the connection. */
  needsIdentifier = false;
  /** Its last packet is being sent. */
  #isLeaving = false;
  /** When the client last sent something, or when we last stopped reading from it. */
  heardMs: number;
  /** Access changed while it was being checked. */
  isDoubtful = false;

  /** In order of arrival, in which they are acknowledged. */
  unacked: UnackedPublish[] = [];
  unackedBytes = 0;
  /** Bytes of a packet that has not ended yet, unless it is a large one. */
  begunBytes = 0;
  /** A message of measurements that is larger than other packets may be, and not whole yet. */
  large: LargePacket | null = null;
  /** It has, or may have, data that we have not read. */
  isStarved = false;
  /** Acknowledgements of stored messages. They are written once the connection is read empty. */
  pubacks: Ack[] = [];
  /** Since when the first of them waits. */
  pubacksSinceMs = 0;
  /** Something was read since this was last checked. */
  hasRead = false;
  /** Since when its socket takes no more bytes. */
  blockedSinceMs: number | null = null;
  /** Message identifiers of QoS 2 between PUBLISH and PUBREL. */
  unreleased: Set<number> | null = null;
  /**
   * Which of its messages need not be stored any more. Once the connection is gone: those that the device will send
   * again and that would then be stored twice. If the store is away for too long: all.
   */
  withdrawn: 'nothing' | 'resendable' | 'all' = 'nothing';

  /** Reads the connection; null before its first byte. */
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

  /** Closes the connection. The first reason given counts. `code`: the reason code for a client of MQTT 5. */
  close(reason: ConnectionEnding, code: number = disconnectCodes[reason]): void {
    if (this.#isLeaving) return;
    const isEnding = this.ending !== null;
    this.ending ??= reason;
    if (isEnding || !this.v5 || this.stage !== 'ready' || code === 0) this.socket.destroy();
    else this.leave(reason, disconnect(code));
  }

  /**
   * Stops reading, and closes once everything read before has been handled. A forbidden packet is no reason to lose
   * those before it, however many chunks they came in.
   */
  breakOff(reason: ConnectionEnding, code?: number): void {
    if (this.isBroken) return;
    this.isBroken = true;
    setImmediate(() => this.close(reason, code));
  }

  /** Sends a last packet, if the client reads at all, and closes. Sections 3.14.4 and 4.13. */
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

  /** Writes to the socket without aedes. A full socket is not read until it has drained. */
  write(bytes: Buffer, monotonicMs: MonotonicMs): void {
    if (this.socket.write(bytes) || this.blockedSinceMs !== null) return;
    this.blockedSinceMs = monotonicMs;
    this.socket.once('drain', () => {
      this.blockedSinceMs = null;
      this.resume();
    });
  }

  /** Reads the connection again, if nothing else keeps it from being read. */
  resume(): void {
    if (this.isStarved) this.reader?.resume(this);
  }
}

const link = Symbol('connection');
type Linked = { [link]?: Connection };

/** Lets code that has only the socket find its connection. */
export function linkConnection(connection: Connection): void {
  (connection.socket as Linked)[link] = connection;
}

export function findConnection(client: Client | null): Connection | null {
  return (client?.conn as Linked | undefined)?.[link] ?? null;
}
