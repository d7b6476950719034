import type { Delivery, Outcome, Rejection, Uplink } from '../../src/contract/uplink.ts';
import { isRecognisedAgain } from '../device/uplink.ts';
import {
  type ConnectorPorts,
  isGone,
  isUnavailableError,
  type Log,
  type Observer,
} from '../ports.ts';
import type { V5Session } from './connect-packet.ts';
import type { AccountConnections, Ack, Connection, Device, UnackedPublish } from './connection.ts';
import { acknowledgement, reason } from './v5.ts';
import type { MonotonicClock, MonotonicMs } from '../../src/lib/clock-readings.ts';

/**
 * An account may hold this many times the bytes that are still free: one alone up to two thirds of all,
 * two up to two fifths each. So some bytes stay free for the next account, however many there are
 * (dynamic thresholds: Choudhury and Hahne, 1998).
 */
const shareOfFree = 2;
/** After so many accounts that may not go on yet the search ends, until the next message is stored. */
const mostInVain = 8;

export type UnackedBudget = ReturnType<typeof createUnackedBudget>;

/** What messages that wait for their commit may take of the memory, all connections together. */
export function createUnackedBudget(maxBytes: number) {
  const waiting = new Set<AccountConnections>();
  let bytes = 0;

  const hasRoom = (account: AccountConnections | null) =>
    (account?.bytes ?? 0) < shareOfFree * (maxBytes - bytes);

  /** Between those that wait because of their account, and those under way. */
  function bringBack({ account }: Device, more: number): void {
    bytes += more;
    account.bytes += more;
    account.parkedBytes -= more;
  }

  /** Accounts in turn, one connection each. */
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
    /** Whether there is room for another message of the connection; where not, it is resumed when there is. */
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

    /** What waits because of its account is not under way: nobody else waits for it. */
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

/** Whoever acknowledges messages, in their order. */
type AckListener = {
  stored(unacked: Unacked): void;
  failed(unacked: Unacked, error: unknown): void;
};

/**
 * A message that waits for its commit, or for the acknowledgement of those before it. It takes its room until it is
 * stored, or fails.
 */
export class Unacked implements UnackedPublish, Delivery {
  isStored = false;
  /** What became of its payload; null while that is not parsed, and once it is stored. */
  uplink: Pick<Uplink, 'content'> | null = null;
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
    message: Omit<UnackedPublish, 'isStored'>,
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

  /** Of one that is not parsed yet nobody knows whether a second copy would be recognised. */
  get isWithdrawn(): boolean {
    const { withdrawn } = this.connection;
    if (withdrawn !== 'resendable') return withdrawn === 'all';
    return this.qos > 0 && this.uplink !== null && !isRecognisedAgain(this.uplink.content);
  }

  stored(): void {
    this.isStored = true;
    this.uplink = null;
    this.#budget.release(this.connection, this.bytes);
    this.#acknowledger.stored(this);
  }

  failed(error: unknown): void {
    this.#budget.release(this.connection, this.bytes);
    this.#acknowledger.failed(this, error);
  }
}

/** One whose acknowledgement says what became of its items. */
export class CountedUnacked extends Unacked {
  outcome: Outcome | null = null;

  settled(outcome: Outcome): void {
    this.outcome = outcome;
  }
}

type AcknowledgerDeps = {
  ports: Pick<ConnectorPorts, 'withdraw'>;
  /** Messages that wait because of their account. */
  backpressure: Pick<ConnectorPorts, 'withdraw'>;
  observe: Observer;
  log: Log;
  now: MonotonicClock;
};

export type Acknowledger = ReturnType<typeof createAcknowledger>;

/** So many acknowledgements of a connection wait at most until it has been read empty, and so long. */
const maxUnwritten = 10_000;
const maxUnwrittenMs = 1_000;

/**
 * Acknowledges a message once it, and every one before it on its connection, is committed, so that
 * acknowledgements keep their order [MQTT-4.6.0-2] and mean "stored". Where it is not stored, closes the
 * connection, so that the device sends it again.
 *
 * They are written once everything that the device has sent is read. A program that publishes, says DISCONNECT and closes its
 * socket reads none of them. Its system answers each with a reset, and what we have not read by then may be lost, although
 * the program will not send it again.
 */
export function createAcknowledger(deps: AcknowledgerDeps) {
  const { ports, backpressure, observe, log, now } = deps;
  /** Closed connections with messages that nobody will send again. */
  const lingering = new Set<Connection>();
  /** Connections with acknowledgements to be written, as soon as they are read empty. */
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

  /** A commit stores many messages: the acknowledgements of one connection are written in one piece. */
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
      // One that may not be read now is asked again when it is.
      else if (!connection.isStarved) writeSoon(connection);
    }
  }

  /**
   * Whether the connection is read empty: a whole turn of the event loop brought nothing more. One that may not be read for
   * long, as it is beyond its rate, is not waited for; one that is read in a turn of the loop that comes is.
   */
  function mayWrite(connection: Connection): boolean {
    const { socket, hasRead, pubacks, isStarved, unacked, turn } = connection;
    connection.hasRead = false;
    const isReadEmpty = !hasRead && socket.readableLength === 0;
    const waitsForLong = isStarved && unacked.length === 0 && turn === null;
    const isLate = now() - connection.pubacksSinceMs >= maxUnwrittenMs;
    return isReadEmpty || waitsForLong || isLate || isAtEnd || pubacks.length >= maxUnwritten;
  }

  function writeNow(connection: Connection): void {
    const { pubacks } = connection;
    connection.pubacks = [];
    writePubacks(connection, pubacks, now());
  }

  /** No acknowledgement: the device will send it again. */
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

  /** What need not be stored any more is dropped, so that it does not keep the connection in memory. */
  function forget({ device, unacked }: Connection): void {
    if (!device || unacked.length === 0) return;
    backpressure.withdraw(device.identity);
    ports.withdraw(device.identity);
  }

  return {
    stored,
    failed,

    /** It is read, or could be: acknowledgements that waited for that are written once nothing comes any more. */
    wasRead(connection: Connection): void {
      if (connection.pubacks.length > 0) writeSoon(connection);
    },

    /** Nothing more is read: what is stored is acknowledged at once from now on. */
    readsEnd(connections: Iterable<Connection>): void {
      isAtEnd = true;
      for (const connection of connections) writeNow(connection);
    },

    /** Something on this connection, which ends, will not be sent again. */
    linger: (connection: Connection): void => void lingering.add(connection),

    /**
     * The connection has ended. What was received of it is stored where the device sends it no more (it said
     * DISCONNECT, or its QoS is 0) or where a second copy would be recognised. The rest is withdrawn: libraries send it
     * again, whatever became of the session.
     */
    withdraw(connection: Connection): void {
      if (connection.unacked.length > 0) lingering.add(connection);
      if (connection.hasLeft) return;
      if (connection.withdrawn === 'nothing') connection.withdrawn = 'resendable';
      forget(connection);
    },

    /**
     * Gives up what is not stored in time, so that it does not fill the memory, and writes the acknowledgements of
     * connections that could not be read meanwhile.
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
 * Writes acknowledgements, those of QoS 1 in MQTT 3.1.1 by their identifier (section 3.4), others whole, in one
 * piece: as aedes does it, each is three writes (over WebSocket three frames). A socket that is full is not
 * read either, so that what waits to be written stays bounded.
 */
export function writePubacks(connection: Connection, acks: Ack[], monotonicMs: MonotonicMs): void {
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

/** Writes past aedes. A socket that is full is not read until it has taken what it was given. */
export function write(connection: Connection, bytes: Buffer, monotonicMs: MonotonicMs): void {
  const { socket } = connection;
  if (socket.write(bytes) || connection.blockedSinceMs !== null) return;
  connection.blockedSinceMs = monotonicMs;
  socket.once('drain', () => {
    connection.blockedSinceMs = null;
    connection.resume();
  });
}

/** Characters of a rejection's message that an acknowledgement tells; the whole of it is on down/errors. */
const maxReasonLength = 200;

/**
 * The PUBACK or PUBREC of a message that is stored, MQTT 5 sections 3.4 and 3.5: success, unless every item of
 * it was rejected. How many were is a user property. One that is not a success ends the exchange: no PUBREL
 * follows.
 */
function ackOf(connection: Connection, session: V5Session, unacked: UnackedPublish): Ack {
  const { qos, messageId, outcome } = unacked;
  // Nearly all.
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

/** A member that has no effect is a remark: its item was taken. */
const isItem = ({ reason: word }: Rejection) => word !== 'unknown-member';

function codeOf({ reason: word }: Rejection): number {
  if (word === 'invalid-json') return reason.payloadFormatInvalid;
  return word === 'unknown-topic' ? reason.topicInvalid : reason.implementationSpecific;
}

// [MQTT-1.5.4-1] [MQTT-1.5.4-2]
const textOf = ({ message }: Rejection) =>
  message.slice(0, maxReasonLength).toWellFormed().replaceAll('\0', '\uFFFD');
