import {
  type Outcome,
  type Rejection,
  type Uplink,
  type UplinkContent,
} from '../../src/contract/uplink.ts';
import type { MonotonicClock, MonotonicMs } from '../../src/lib/clock-readings.ts';
import { isRecognisedAgain, type Receipt } from '../device/receive.ts';
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

/** Fails a message that its device will send again. */
export const withdrawnError = (): Error =>
  Object.assign(new Error('the device will send it again'), { code: 'unavailable' });

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

  const mayHoldMore = (account: AccountConnections | null) =>
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
      if (!mayHoldMore(account)) {
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
      if (mayHoldMore(account)) return true;
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
export class Unacked implements UnackedPublish, Receipt {
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
export class CountedUnacked extends Unacked {
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
  connection.write(bytes, monotonicMs);
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
