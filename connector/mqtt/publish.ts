import type { Client, PublishPacket } from 'aedes';
import {
  isBelow,
  type Outcome,
  type Rejection,
  type Uplink,
  type UplinkContent,
  upTopicNames,
} from '../../src/contract/uplink.ts';
import type { DeviceLimits } from '../device/limits.ts';
import { isRecognisedAgain, type Receipt, type Receive } from '../device/receive.ts';
import {
  type ConnectorPorts,
  type DevicePorts,
  isGone,
  isUnavailableError,
  type Log,
  type Observer,
  type Tuning,
} from '../ports.ts';
import type { V5Session } from './connect-packet.ts';
import {
  type AccountConnections,
  type Ack,
  type Connection,
  type Device,
  findConnection,
  type UnackedPublish,
} from './connection.ts';
import { readPublish } from './frames.ts';
import { acknowledgement, reason } from './v5.ts';
import type { Clock, MonotonicClock, MonotonicMs, WallMs } from '../../src/lib/clock-readings.ts';

type PublishDeps = {
  clock: Clock;
  deviceLimits: Pick<DeviceLimits, 'charge'>;
  budget: Pick<UnackedBudget, 'reserve' | 'release'>;
  acknowledger: Acknowledger;
  backpressure: Pick<AccountBackpressure, 'take'>;
  receive: Receive;
  tuning: Tuning;
  now: MonotonicClock;
  /** A device published outside its own topics. */
  onForeignTopic: (device: Device, message: ParkedMessage) => void;
};

/** A parsed payload takes about this many times its bytes. The payload itself is kept too. */
const parsedFactor = 4;

export type Publisher = ReturnType<typeof createPublisher>;

/** Takes what devices publish. */
export function createPublisher(deps: PublishDeps) {
  const {
    clock,
    deviceLimits,
    budget,
    acknowledger,
    backpressure,
    receive,
    tuning,
    now,
    onForeignTopic,
  } = deps;

  /** Takes the will of a connection that has ended. aedes publishes nothing else. Nobody will send the will again. */
  function acceptWill(
    client: Client | null,
    packet: PublishPacket,
    done: (error?: Error | null) => void,
  ): void {
    const connection = findConnection(client);
    const device = connection?.device;
    // A will that another process left behind has no client. We never keep any.
    if (!connection || !device || packet !== connection.will)
      return done(new Error('only a will of this connection may be published here'));
    if (connection.ending === 'shutdown') return done(new Error('the service stops'));
    const { topic } = packet;
    acknowledger.linger(connection);
    const payload = packet.payload as Buffer;
    track(device, connection, { topic, qos: 0, messageId: 0, payload }, now(), false);
    done();
  }

  /** Takes the plain messages at the start of a chunk. Returns the rest of the chunk. */
  function acceptLeading(connection: Connection, chunk: Buffer): Buffer | null {
    const { device } = connection;
    if (!device || connection.ending !== null) return chunk;
    let at = 0;
    while (at < chunk.length) {
      const frame = readPublish(chunk, at, device.upPrefix, connection.v5 !== null);
      if (!frame || !upTopicNames.has(frame.topic.slice(device.upPrefix.length))) break;
      track(device, connection, frame, connection.heardMs, false);
      at = frame.end;
    }
    if (at === 0) return chunk;
    return at < chunk.length ? chunk.subarray(at) : null;
  }

  /** Takes a message that was checked. */
  function accept(connection: Connection, { topic, qos, messageId, payload }: ParkedMessage): void {
    const { device } = connection;
    if (!device || connection.ending !== null) return;
    const message = { topic, qos, messageId, payload };
    if (!isBelow(topic, device.upPrefix)) {
      onForeignTopic(device, message);
      return connection.breakOff('foreign-topic');
    }
    // It was sent again before its PUBREL, so it is stored or about to be. [MQTT-4.3.3-2]
    const isRepeated = qos === 2 && !reserve(connection, messageId);
    if (connection.isBroken) return;
    track(device, connection, message, connection.heardMs, isRepeated);
  }

  /** False if the message is known already. Too many identifiers without PUBREL end the connection. */
  function reserve(connection: Connection, messageId: number): boolean {
    const unreleased = (connection.unreleased ??= new Set());
    if (unreleased.has(messageId)) return false;
    unreleased.add(messageId);
    // The receive maximum counts until PUBCOMP, and a client of MQTT 5 knows it from the CONNACK. Section 3.3.4.
    const most = connection.v5 ? tuning.maxUnackedMessages : tuning.maxUnreleased;
    if (unreleased.size > most) connection.breakOff('malformed', reason.receiveMaximumExceeded);
    return true;
  }

  /**
   * Notes which message to acknowledge, and passes it to ingest or, if the account has to wait, parks it. `sinceMs`:
   * when it was read. `isRepeated`: it is stored already, or about to be.
   */
  function track(
    device: Device,
    connection: Connection,
    message: ParkedMessage,
    sinceMs: number,
    isRepeated: boolean,
  ): void {
    const { topic, qos, messageId, payload } = message;
    const bytes = payload.length * parsedFactor + tuning.messageOverheadBytes;
    const Kind = connection.v5 && qos > 0 ? CountedUnacked : Unacked;
    const unacked = new Kind(acknowledger, budget, connection, {
      qos,
      messageId,
      bytes,
      sinceMs,
    });
    // Pushing to an empty array reserves seventeen slots; nearly all of these arrays hold one message.
    if (connection.unacked.length === 0) connection.unacked = [unacked];
    else connection.unacked.push(unacked);
    if (isRepeated) {
      // It is not received again, and costs as much as if it were.
      deviceLimits.charge(device.rates, { messages: 1 }, sinceMs);
      unacked.stored();
    } else if (!backpressure.take(device, message, unacked))
      receive(device, { topic, payload, arrivedTs: clock() }, unacked);
  }

  return { acceptWill, acceptLeading, accept };
}

/** A message as it arrived, not parsed yet. */
export type ParkedMessage = { topic: string; qos: number; messageId: number; payload: Buffer };

type AccountBackpressureOptions = {
  throttle: DevicePorts['throttle'];
  tuning: Pick<Tuning, 'maxParkedBytes' | 'maxParkedTotalBytes'>;
  clock: Clock;
  now: MonotonicClock;
  /** While a message is parked, its bytes do not count as under way. */
  budget: Pick<UnackedBudget, 'setAside' | 'bringBack'>;
  receive: Receive;
};

type Parked = { device: Device; message: ParkedMessage; unacked: Unacked; arrivedTs: WallMs };

/** An account whose devices have to wait. */
type Waiting = {
  /** By device, each in order of arrival. */
  devices: Map<number, Parked[]>;
  bytes: number;
  /** Connections that are not read because too much of the account is parked. */
  unread: Set<Connection>;
  timer: NodeJS.Timeout | null;
};

export type AccountBackpressure = ReturnType<typeof createAccountBackpressure>;

/** This many messages go on at once; then `throttle` is asked again. */
const atOnce = 100;
const pauseMs = 10;
const longestPauseMs = 1_000;

/** Fails a message that its device will send again. */
const withdrawnError = (): Error =>
  Object.assign(new Error('the device will send it again'), { code: 'unavailable' });

/**
 * Parks messages of accounts that send more than they may. Their connections are still read, so that a device gets
 * answers to its pings even if the wait takes days. Parked messages are neither parsed nor acknowledged, so the device
 * soon stops sending. Only when too much of the account is parked are its connections not read either. The messages of
 * a device keep their order.
 */
export function createAccountBackpressure(options: AccountBackpressureOptions) {
  const { throttle, tuning, clock, now, budget, receive } = options;
  const accounts = new Map<number, Waiting>();
  let totalBytes = 0;

  const hasRoom = ({ bytes }: Waiting) =>
    bytes < tuning.maxParkedBytes && totalBytes < tuning.maxParkedTotalBytes;

  function begin(accountId: number): Waiting | null {
    const waitMs = throttle?.waitMs(accountId) ?? 0;
    if (waitMs === 0) return null;
    const waiting: Waiting = { devices: new Map(), bytes: 0, unread: new Set(), timer: null };
    accounts.set(accountId, waiting);
    wait(accountId, waiting, waitMs);
    return waiting;
  }

  function wait(accountId: number, waiting: Waiting, ms: number): void {
    const go = () => goOn(accountId, waiting);
    waiting.timer = setTimeout(go, Math.min(ms, longestPauseMs)).unref();
  }

  function goOn(accountId: number, waiting: Waiting): void {
    const waitMs = throttle?.waitMs(accountId) ?? 0;
    for (let n = 0; waitMs === 0 && n < atOnce && waiting.devices.size > 0; n += 1)
      releaseOne(waiting);
    if (waitMs > 0 || waiting.devices.size > 0) wait(accountId, waiting, waitMs || pauseMs);
    else accounts.delete(accountId);
    readAgain(accountId, waiting);
  }

  /** Resumes all connections if nothing waits any more, otherwise as many as there is room for. */
  function readAgain(accountId: number, waiting: Waiting): void {
    for (const connection of waiting.unread) {
      if (accounts.get(accountId) === waiting && !hasRoom(waiting)) return;
      waiting.unread.delete(connection);
      connection.resume();
    }
  }

  /** Passes on the first message of the device that has waited longest for its turn. */
  function releaseOne(waiting: Waiting): void {
    const [first] = waiting.devices;
    if (!first) return;
    const [deviceId, queue] = first;
    const held = queue.shift();
    waiting.devices.delete(deviceId);
    if (queue.length > 0) waiting.devices.set(deviceId, queue);
    if (!held) return;
    forget(waiting, held);
    held.unacked.sinceMs = now();
    const { topic, payload } = held.message;
    receive(held.device, { topic, payload, arrivedTs: held.arrivedTs }, held.unacked);
  }

  function forget(waiting: Waiting, { device, unacked }: Parked): void {
    waiting.bytes -= unacked.bytes;
    totalBytes -= unacked.bytes;
    budget.bringBack(device, unacked.bytes);
  }

  return {
    /** Parks the message if its account has to wait; false: it may go on. */
    take(device: Device, message: ParkedMessage, unacked: Unacked): boolean {
      const { accountId, deviceId } = device.identity;
      const waiting = accounts.get(accountId) ?? begin(accountId);
      if (!waiting) return false;
      const queue = waiting.devices.get(deviceId) ?? [];
      waiting.devices.set(deviceId, queue);
      // A slice would keep the whole buffer that it is part of.
      const payload = Buffer.from(message.payload);
      queue.push({ device, message: { ...message, payload }, unacked, arrivedTs: clock() });
      // The wait is not the store's fault, so it does not count towards its timeout.
      unacked.sinceMs = Infinity;
      waiting.bytes += unacked.bytes;
      totalBytes += unacked.bytes;
      budget.setAside(device, unacked.bytes);
      throttle?.waits(device.identity, message.topic);
      return true;
    },

    /** Whether the account's parked messages leave room to read a connection. If not, it is resumed once they do. */
    canReadOrWait(connection: Connection, { identity }: Device): boolean {
      const waiting = accounts.get(identity.accountId);
      if (!waiting || hasRoom(waiting)) return true;
      waiting.unread.add(connection);
      return false;
    },

    /** Fails those of the device's messages that need not be stored any more. */
    withdraw({ accountId, deviceId }: Device['identity']): void {
      const waiting = accounts.get(accountId);
      const queue = waiting?.devices.get(deviceId);
      if (!waiting || !queue) return;
      const left = queue.filter(({ unacked }) => !unacked.isWithdrawn);
      if (left.length > 0) waiting.devices.set(deviceId, left);
      else waiting.devices.delete(deviceId);
      for (const held of queue) {
        if (!held.unacked.isWithdrawn) continue;
        forget(waiting, held);
        held.unacked.failed(withdrawnError());
      }
    },

    forgetConnection(connection: Connection): void {
      const { device } = connection;
      if (device) accounts.get(device.identity.accountId)?.unread.delete(connection);
    },

    stop(): void {
      for (const { timer } of accounts.values()) if (timer) clearTimeout(timer);
    },
  };
}

/**
 * An account may hold at most this many times the bytes still free: one account alone up to two thirds of the budget,
 * two up to two fifths each. So some bytes stay free for the next account, however many there are (dynamic thresholds:
 * Choudhury and Hahne, 1998).
 */
const shareOfFree = 2;
/** After this many accounts that still have no room, the search ends until the next message is stored. */
const mostInVain = 8;

export type UnackedBudget = ReturnType<typeof createUnackedBudget>;

/** The memory budget for messages that wait for their commit, all connections together. */
export function createUnackedBudget(maxBytes: number) {
  const waiting = new Set<AccountConnections>();
  let bytes = 0;

  const hasRoom = (account: AccountConnections | null) =>
    (account?.bytes ?? 0) < shareOfFree * (maxBytes - bytes);

  /** Moves bytes from the account's parked messages to those under way. */
  function bringBack({ account }: Device, more: number): void {
    bytes += more;
    account.bytes += more;
    account.parkedBytes -= more;
  }

  /** Resumes one connection of each account in turn. */
  function resumeWaiting(): void {
    let inVain = 0;
    for (const account of waiting) {
      waiting.delete(account);
      const [first] = account.waiting;
      if (!first) continue;
      if (!hasRoom(account)) {
        waiting.add(account);
        inVain += 1;
        if (bytes >= maxBytes || inVain >= mostInVain) return;
        continue;
      }
      account.waiting.delete(first);
      if (account.waiting.size > 0) waiting.add(account);
      first.resume();
    }
  }

  return {
    /** Whether there is room for another message of the connection. If not, it is resumed once there is. */
    isFor(connection: Connection): boolean {
      const account = connection.device?.account ?? null;
      if (hasRoom(account)) return true;
      if (account) {
        account.waiting.add(connection);
        waiting.add(account);
      }
      return false;
    },

    reserve(connection: Connection, more: number): void {
      connection.unackedBytes += more;
      bytes += more;
      if (connection.device) connection.device.account.bytes += more;
    },

    release(connection: Connection, less: number): void {
      connection.unackedBytes -= less;
      bytes -= less;
      if (connection.device) connection.device.account.bytes -= less;
      if (waiting.size > 0) resumeWaiting();
    },

    /** Moves bytes to the account's parked messages. These take no room from others. */
    setAside(device: Device, less: number): void {
      bringBack(device, -less);
      if (waiting.size > 0) resumeWaiting();
    },

    bringBack,

    forget(connection: Connection): void {
      connection.device?.account.waiting.delete(connection);
    },

    bytes: () => bytes,
  };
}

/** Acknowledges messages, in their order. */
type AckListener = {
  stored(unacked: Unacked): void;
  failed(unacked: Unacked, error: unknown): void;
};

/**
 * A message that waits for its commit or for earlier acknowledgements. Reserves its bytes until stored or failed.
 */
class Unacked implements UnackedPublish, Receipt {
  isStored = false;
  isWithdrawn = false;
  /** What it says; null before it is parsed, and once it is stored. */
  #content: UplinkContent | null = null;
  readonly connection: Connection;
  readonly qos: number;
  readonly messageId: number;
  readonly bytes: number;
  sinceMs: number;
  readonly #acknowledger: AckListener;
  readonly #budget: Pick<UnackedBudget, 'release'>;

  constructor(
    acknowledger: AckListener,
    budget: Pick<UnackedBudget, 'reserve' | 'release'>,
    connection: Connection,
    message: Pick<UnackedPublish, 'qos' | 'messageId' | 'bytes' | 'sinceMs'>,
  ) {
    this.#acknowledger = acknowledger;
    this.#budget = budget;
    this.connection = connection;
    this.qos = message.qos;
    this.messageId = message.messageId;
    this.bytes = message.bytes;
    this.sinceMs = message.sinceMs;
    budget.reserve(connection, message.bytes);
  }

  accepts({ content }: Uplink): boolean {
    this.#content = content;
    if (this.connection.withdrawn === 'nothing') return true;
    this.withdraw();
    if (this.isWithdrawn) this.failed(withdrawnError());
    return !this.isWithdrawn;
  }

  /** A message that is not parsed yet is kept, because nobody knows whether a second copy would be recognised. */
  withdraw(): void {
    const { withdrawn } = this.connection;
    const isSentAgain = this.qos > 0 && this.#content !== null && !isRecognisedAgain(this.#content);
    this.isWithdrawn = withdrawn === 'all' || (withdrawn === 'resendable' && isSentAgain);
  }

  stored(): void {
    this.isStored = true;
    this.#content = null;
    this.#budget.release(this.connection, this.bytes);
    this.#acknowledger.stored(this);
  }

  failed(error: unknown): void {
    this.#budget.release(this.connection, this.bytes);
    this.#acknowledger.failed(this, error);
  }
}

/** A message whose acknowledgement states what became of its items. */
class CountedUnacked extends Unacked {
  outcome: Outcome | null = null;

  settled(outcome: Outcome): void {
    this.outcome = outcome;
  }
}

type AcknowledgerDeps = {
  ports: Pick<ConnectorPorts, 'withdraw'>;
  /** Holds the messages that wait because of their account. */
  backpressure: Pick<ConnectorPorts, 'withdraw'>;
  observe: Observer;
  log: Log;
  now: MonotonicClock;
};

export type Acknowledger = ReturnType<typeof createAcknowledger>;

/** How many acknowledgements of a connection wait until it is read empty, and for how long. */
const maxUnwritten = 10_000;
const maxUnwrittenMs = 1_000;

/**
 * Acknowledges a message once it and every earlier one of its connection are committed, so acknowledgements keep their
 * order [MQTT-4.6.0-2] and mean "stored". If a message is not stored, the connection is closed, and the device sends it
 * again.
 *
 * Acknowledgements are written once everything that the device has sent is read. A program that publishes, sends
 * DISCONNECT and closes its socket reads none of them. Its system answers each with a reset, and whatever we have not
 * read by then may be lost, although the program will not send it again.
 */
export function createAcknowledger(deps: AcknowledgerDeps) {
  const { ports, backpressure, observe, log, now } = deps;
  /** Closed connections with messages that nobody will send again. */
  const lingering = new Set<Connection>();
  /** Connections with acknowledgements to write as soon as they are read empty. */
  const unwritten = new Set<Connection>();
  let isScheduled = false;
  /** Nothing more is read. */
  let isAtEnd = false;

  function stored({ connection }: Unacked): void {
    const queue = connection.unacked;
    const monotonicMs = now();
    while (queue[0]?.isStored) {
      const first = queue.shift() as UnackedPublish;
      const { sinceMs, qos, messageId } = first;
      if (connection.ending !== null) continue;
      const { v5 } = connection;
      if (v5 && qos > 0) acknowledge(connection, ackOf(connection, v5, first));
      else if (qos > 0)
        acknowledge(connection, qos === 1 ? messageId : acknowledgement(2, messageId, 0, null));
      observe.acknowledged((monotonicMs - sinceMs) / 1_000);
    }
    if (connection.isStarved) connection.resume();
    if (lingering.size > 0 && connection.unacked.length === 0) lingering.delete(connection);
  }

  /** A commit stores many messages; the acknowledgements of one connection are written together. */
  function acknowledge(connection: Connection, ack: Ack): void {
    if (connection.pubacks.length === 0) connection.pubacksSinceMs = now();
    connection.pubacks.push(ack);
    writeSoon(connection);
  }

  function writeSoon(connection: Connection): void {
    unwritten.add(connection);
    if (isScheduled) return;
    isScheduled = true;
    setImmediate(writeAll);
  }

  function writeAll(): void {
    isScheduled = false;
    const asked = [...unwritten];
    unwritten.clear();
    for (const connection of asked) {
      if (mayWrite(connection)) writeNow(connection);
      // Is checked again. A connection that is not read now is put here by whoever reads it.
      else if (!connection.isStarved) writeSoon(connection);
    }
  }

  /**
   * Whether to write now. Usually that is when the connection is read empty: a whole turn of the event loop brought
   * nothing more. A connection that stays unread for long, because it is beyond its rate, is not waited for; one that
   * is read in a coming turn of the loop is.
   */
  function mayWrite(connection: Connection): boolean {
    const { socket, hasRead, pubacks, isStarved, unacked, readTurn } = connection;
    connection.hasRead = false;
    const isReadEmpty = !hasRead && socket.readableLength === 0;
    const waitsForLong = isStarved && unacked.length === 0 && readTurn === null;
    const isLate = now() - connection.pubacksSinceMs >= maxUnwrittenMs;
    return isReadEmpty || waitsForLong || isLate || isAtEnd || pubacks.length >= maxUnwritten;
  }

  function writeNow(connection: Connection): void {
    const { pubacks } = connection;
    connection.pubacks = [];
    writePubacks(connection, pubacks, now());
  }

  /** Sends no acknowledgement, so that the device sends the message again. */
  function failed(unacked: Unacked, error: unknown): void {
    const { connection } = unacked;
    const { stage, device } = connection;
    const index = connection.unacked.indexOf(unacked);
    if (index >= 0) connection.unacked.splice(index, 1);
    if (connection.unacked.length === 0) lingering.delete(connection);
    connection.close('not-stored');
    if (isUnavailableError(error) || isGone(error) || stage === 'closed') return;
    log.error(
      { event: 'message.not-stored', err: error, device: device?.identity.uuid },
      'A message was not stored; its connection is closed without acknowledging it.',
    );
  }

  function giveUp(connection: Connection): void {
    lingering.delete(connection);
    connection.close('not-stored');
    connection.withdrawn = 'all';
    forget(connection);
  }

  /** Drops messages that need not be stored any more, so that they do not keep the connection in memory. */
  function forget({ device, unacked }: Connection): void {
    if (!device || unacked.length === 0) return;
    for (const one of unacked) one.withdraw();
    backpressure.withdraw(device.identity);
    ports.withdraw(device.identity);
  }

  return {
    stored,
    failed,

    /** Its acknowledgements are written once the connection is read empty. */
    writeSoon,

    /** Nothing more is read: from now on stored messages are acknowledged at once. */
    readsEnd(connections: Iterable<Connection>): void {
      isAtEnd = true;
      for (const connection of connections) writeNow(connection);
    },

    /** This connection is ending, and something on it will not be sent again. */
    linger: (connection: Connection): void => void lingering.add(connection),

    /**
     * The connection has ended. A message is still stored if the device will not send it again (it sent DISCONNECT, or
     * the QoS is 0) or if a second copy would be recognised. The rest is withdrawn: client libraries send it again,
     * whatever became of the session.
     */
    withdraw(connection: Connection): void {
      if (connection.unacked.length > 0) lingering.add(connection);
      if (connection.hasLeft) return;
      if (connection.withdrawn === 'nothing') connection.withdrawn = 'resendable';
      forget(connection);
    },

    /**
     * Gives up messages that are not stored in time, so that they do not fill the memory. Also writes the
     * acknowledgements of connections that could not be read in the meantime.
     */
    giveUpLate(connections: Iterable<Connection>, timeoutMs: number): void {
      const latestMs = now() - timeoutMs;
      for (const connection of connections)
        if (connection.pubacks.length > 0 && connection.pubacksSinceMs <= latestMs)
          writeNow(connection);
      const isLate = ({ unacked }: Connection) => (unacked[0]?.sinceMs ?? Infinity) <= latestMs;
      for (const connection of connections) if (isLate(connection)) giveUp(connection);
      for (const connection of lingering) if (isLate(connection)) giveUp(connection);
    },
  };
}

/**
 * Writes acknowledgements in one piece: those of QoS 1 in MQTT 3.1.1 by their identifier (section 3.4), others as whole
 * packets. aedes would make three writes of each (three frames over WebSocket). A full socket is not read either, so
 * that what waits to be written stays bounded.
 */
function writePubacks(connection: Connection, acks: Ack[], monotonicMs: MonotonicMs): void {
  if (acks.length === 0 || !connection.socket.writable) return;
  let length = 0;
  for (const ack of acks) length += typeof ack === 'number' ? 4 : ack.length;
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const ack of acks) {
    if (typeof ack === 'number') {
      bytes[at] = 0x40;
      bytes[at + 1] = 2;
      at = bytes.writeUInt16BE(ack, at + 2);
    } else at += ack.copy(bytes, at);
  }
  write(connection, bytes, monotonicMs);
}

/** Writes to the socket without aedes. A full socket is not read until it has drained. */
export function write(connection: Connection, bytes: Buffer, monotonicMs: MonotonicMs): void {
  const { socket } = connection;
  if (socket.write(bytes) || connection.blockedSinceMs !== null) return;
  connection.blockedSinceMs = monotonicMs;
  socket.once('drain', () => {
    connection.blockedSinceMs = null;
    connection.resume();
  });
}

/** How many characters of a rejection an acknowledgement quotes; down/errors has all of it. */
const maxReasonLength = 200;

/**
 * The PUBACK or PUBREC of a stored message, MQTT 5 sections 3.4 and 3.5. It is a success unless every item was
 * rejected. A user property holds the number of rejected items. A PUBREC with an error ends the exchange: no PUBREL
 * follows.
 */
function ackOf(connection: Connection, session: V5Session, unacked: UnackedPublish): Ack {
  const { qos, messageId, outcome } = unacked;
  // The usual case.
  if (qos === 1 && (!outcome || outcome.rejected.length === 0)) return messageId;
  const rejected = outcome ? outcome.rejected.filter(isItem) : [];
  const [first] = rejected;
  if (!outcome || !first) return qos === 1 ? messageId : acknowledgement(qos, messageId, 0, null);
  const isAll = outcome.stored + outcome.repeated === 0;
  const code = isAll ? codeOf(first) : reason.success;
  if (qos === 2 && code !== reason.success) connection.unreleased?.delete(messageId);
  const count = rejected.reduce((sum, { more }) => sum + (more ?? 1), 0);
  const reasonString = isAll ? textOf(first) : null;
  const whole = acknowledgement(qos, messageId, code, { reasonString, rejected: count });
  // [MQTT-3.1.2-29] [MQTT-3.4.2-2] [MQTT-3.4.2-3] [MQTT-3.5.2-2] [MQTT-3.5.2-3]
  if (session.wantsProblems && whole.length <= session.maxPacketBytes) return whole;
  return acknowledgement(qos, messageId, code, null);
}

/** An unknown member is only reported; its item was taken. */
const isItem = ({ reason: word }: Rejection) => word !== 'unknown-member';

function codeOf({ reason: word }: Rejection): number {
  if (word === 'invalid-json') return reason.payloadFormatInvalid;
  return word === 'unknown-topic' ? reason.topicInvalid : reason.implementationSpecific;
}

// [MQTT-1.5.4-1] [MQTT-1.5.4-2]
const textOf = ({ message }: Rejection) =>
  message.slice(0, maxReasonLength).toWellFormed().replaceAll('\0', '\uFFFD');
