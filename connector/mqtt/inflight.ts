import { isGone, isUnavailableError } from '../failure.ts';
import type { Log, Observer } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import type { Ack, Connection, UnackedPublish } from './connection.ts';
import type { Unacked } from './unacked.ts';
import { ackOf } from './v5-ack.ts';
import { acknowledgement } from './v5-write.ts';

export type AcknowledgerDeps = {
  ports: Pick<ConnectorPorts, 'withdraw'>;
  /** Messages that wait because of their account. */
  holding: Pick<ConnectorPorts, 'withdraw'>;
  observe: Observer;
  log: Log;
  now: () => number;
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
  const { ports, holding, observe, log, now } = deps;
  /** Closed connections with messages that nobody will send again. */
  const lingering = new Set<Connection>();
  /** Connections with acknowledgements to be written, as soon as they are read empty. */
  const unwritten = new Set<Connection>();
  let isScheduled = false;
  /** Nothing more is read. */
  let isAtEnd = false;

  function stored({ connection }: Unacked): void {
    const queue = connection.unacked;
    const nowMs = now();
    while (queue[0]?.isStored) {
      const first = queue.shift() as UnackedPublish;
      const { sinceMs, qos, messageId } = first;
      if (connection.ending !== null) continue;
      const { v5 } = connection;
      if (v5 && qos > 0) acknowledge(connection, ackOf(connection, v5, first));
      else if (qos > 0)
        acknowledge(connection, qos === 1 ? messageId : acknowledgement(2, messageId, 0, null));
      observe.acknowledged((nowMs - sinceMs) / 1_000);
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
      'A message was not stored: its connection is closed, unacknowledged.',
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
    holding.withdraw(device.identity);
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
export function writePubacks(connection: Connection, acks: Ack[], nowMs: number): void {
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
  write(connection, bytes, nowMs);
}

/** Writes past aedes. A socket that is full is not read until it has taken what it was given. */
export function write(connection: Connection, bytes: Buffer, nowMs: number): void {
  const { socket } = connection;
  if (socket.write(bytes) || connection.blockedSinceMs !== null) return;
  connection.blockedSinceMs = nowMs;
  socket.once('drain', () => {
    connection.blockedSinceMs = null;
    connection.resume();
  });
}
