import { append } from '../../src/lib/append.ts';
import type { Connection } from './connection.ts';
import { isGone, isUnavailableError } from '../failure.ts';
import type { FlowControl } from './flow-control.ts';
import type { Log, Observer } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import { writePubacks } from './puback.ts';
import type { Received } from '../device/received.ts';
import type { Unacked } from './unacked.ts';

export type AcknowledgerDeps = {
  ports: Pick<ConnectorPorts, 'withdraw'>;
  intake: FlowControl;
  observe: Observer;
  log: Log;
  now: () => number;
};

export type Acknowledger = ReturnType<typeof createAcknowledger>;

/**
 * What follows the fate of a message: its acknowledgement once it, and every one before it on its
 * connection, is committed, so that acknowledgements keep their order [MQTT-4.6.0-2] and mean
 * "stored"; or the end of the connection, so that the device sends it again.
 */
export function createAcknowledger({ ports, intake, observe, log, now }: AcknowledgerDeps) {
  /** Closed connections with messages that nobody will send again. */
  const lingering = new Set<Connection>();
  /** Connections with acknowledgements that are not written yet. */
  let owing: Connection[] = [];

  function stored(unacked: Unacked): void {
    const { connection } = unacked;
    unacked.isStored = true;
    intake.release(connection, unacked.bytes);
    const queue = connection.unacked;
    const nowMs = now();
    while (queue[0]?.isStored) {
      const { proceed, sinceMs, qos, messageId } = queue.shift() as Received;
      if (connection.ending !== null) continue;
      if (qos === 1) acknowledge(connection, messageId);
      proceed?.();
      observe.acknowledged((nowMs - sinceMs) / 1_000);
    }
    intake.resume(connection);
    if (lingering.size > 0 && connection.unacked.length === 0) lingering.delete(connection);
  }

  /** A commit settles many messages, one by one: what it owes one connection leaves in one piece. */
  function acknowledge(connection: Connection, messageId: number): void {
    connection.pubacks = append(connection.pubacks, messageId);
    if (connection.pubacks.length > 1) return;
    if (owing.push(connection) === 1) process.nextTick(writeOwed);
  }

  function writeOwed(): void {
    const connections = owing;
    owing = [];
    const nowMs = now();
    for (const connection of connections) {
      const owed = connection.pubacks;
      connection.pubacks = [];
      writePubacks(connection, owed, nowMs, intake.resume);
    }
  }

  /** No acknowledgement: the device will send it again. */
  function failed(unacked: Unacked, error: unknown): void {
    const { connection } = unacked;
    const { stage, device } = connection;
    intake.release(connection, unacked.bytes);
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

  /** What need not be stored any more is not kept either, nor the connection for its sake. */
  function forget({ device, unacked }: Connection): void {
    if (device && unacked.length > 0) ports.withdraw(device.identity);
  }

  return {
    stored,
    failed,

    /** Something on this connection, which ends, will not be sent again. */
    linger: (connection: Connection): void => void lingering.add(connection),

    /** The device will send again what was not acknowledged; what it will not, waits on. */
    withdraw(connection: Connection): void {
      if (connection.withdrawn === 'nothing') connection.withdrawn = 'resendable';
      if (connection.unacked.some(({ qos }) => qos === 0)) lingering.add(connection);
      forget(connection);
    },

    /** Gives up what the store does not take, so that nothing piles up. */
    sweep(connections: Iterable<Connection>, timeoutMs: number): void {
      const latestMs = now() - timeoutMs;
      const isLate = ({ unacked }: Connection) => (unacked[0]?.sinceMs ?? Infinity) <= latestMs;
      for (const connection of connections) if (isLate(connection)) giveUp(connection);
      for (const connection of lingering) if (isLate(connection)) giveUp(connection);
    },

    giveUp,
  };
}
