import type { Client, PublishPacket } from 'aedes';
import { findConnection, type Connection, type Device, type Unacked } from './connection.ts';
import { isGone, isUnavailable } from './failure.ts';
import type { Intake, Rates } from './intake.ts';
import type { Log, Observer, Tuning } from './options.ts';
import type { ConnectorPorts } from './ports.ts';
import { writePubacks } from './puback.ts';
import { readPublish } from './publish-frame.ts';
import { findUpTopic } from '../src/core/topic.ts';
import { parseUplink } from './uplink.ts';

export type PublishDeps = {
  ports: ConnectorPorts;
  intake: Intake;
  rates: Rates;
  tuning: Tuning;
  observe: Observer;
  log: Log;
  now: () => number;
};

/** Parsed, a payload takes about so many times its bytes. */
const parsedFactor = 3;
const empty = Buffer.alloc(0);

type Done = (error?: Error | null) => void;

export type Publisher = ReturnType<typeof createPublisher>;

/**
 * The way of a PUBLISH. aedes goes on with a packet (PUBREC, and the next read) when the callback it
 * gave to `authorizePublish` is called: here that is once the message, and every one before it on
 * this connection, is committed, so that acknowledgements keep their order [MQTT-4.6.0-2] and mean
 * "stored".
 */
export function createPublisher(deps: PublishDeps) {
  const { ports, intake, rates, tuning, observe, log, now } = deps;
  /** Closed connections with messages that nobody will send again. */
  const lingering = new Set<Connection>();

  function accept(client: Client | null, packet: PublishPacket, done: Done): void {
    const connection = findConnection(client);
    const device = connection?.device;
    // A will left behind by another process has no client. None is ever kept.
    if (!connection || !device) return done(new Error('nobody publishes this'));
    const isWill = packet === connection.will;
    if (isWill && connection.ending === 'shutdown') return done(new Error('the service stops'));
    if (!isOwn(packet.topic, device)) {
      connection.ending ??= 'foreign-topic';
      return done(new Error('published outside of its own up/'));
    }
    const { topic, messageId = 0 } = packet;
    const qos = isWill ? 0 : packet.qos;
    // Sent again before its PUBREL: it is stored, or about to be. [MQTT-4.3.3-2]
    const isRepeated = qos === 2 && !reserve(connection, messageId);
    if (connection.ending !== null && !isWill) return;
    const payload = packet.payload as Buffer;
    // Nobody needs the bytes any more, nor the socket's buffer that they are a part of.
    packet.payload = empty;
    // The acknowledgement is ours to write: for aedes there is none.
    if (qos === 1) packet.qos = 0;
    if (isWill) lingering.add(connection);
    const unacked = hold(connection, { qos, messageId, payload }, done);
    if (isRepeated) settle(connection, unacked);
    else carry(connection, device, unacked, topic, payload);
  }

  /** Takes the plain messages that a chunk begins with; gives the rest of it, which aedes is to read. */
  function acceptLeading(connection: Connection, chunk: Buffer): Buffer | null {
    const { device } = connection;
    if (!device || connection.stage !== 'ready' || connection.ending !== null) return chunk;
    let at = 0;
    while (at < chunk.length) {
      const frame = readPublish(chunk, at, device.upPrefix);
      if (!frame || findUpTopic(frame.topic, device.upPrefix) === null) break;
      const unacked = hold(connection, frame, null);
      carry(connection, device, unacked, frame.topic, frame.payload);
      at = frame.end;
    }
    if (at === 0) return chunk;
    return at < chunk.length ? chunk.subarray(at) : null;
  }

  function hold(
    connection: Connection,
    { qos, messageId, payload }: Pick<Unacked, 'qos' | 'messageId'> & { payload: Buffer },
    proceed: Unacked['proceed'],
  ): Unacked {
    const bytes = payload.length * parsedFactor + tuning.messageOverheadBytes;
    const unacked = { proceed, isStored: false, bytes, sinceMs: now(), qos, messageId };
    intake.hold(connection, bytes);
    connection.unacked.push(unacked);
    return unacked;
  }

  function carry(
    connection: Connection,
    device: Device,
    unacked: Unacked,
    topic: string,
    payload: Buffer,
  ): void {
    const uplink = parseUplink(topic, device.upPrefix, payload, ports.clock());
    const { content } = uplink;
    observe.message(content.kind);
    if (content.kind === 'measurements')
      device.measurements.take(content.items.length, rates.measurements, now());
    ports.ingest(device.identity, uplink, signalOf(connection, unacked.qos)).then(
      () => settle(connection, unacked),
      (error: unknown) => fail(connection, unacked, error),
    );
  }

  /** False where the message is known already. Too many of them end the connection. */
  function reserve(connection: Connection, messageId: number): boolean {
    const unreleased = (connection.unreleased ??= new Set());
    if (unreleased.has(messageId)) return false;
    unreleased.add(messageId);
    if (unreleased.size > tuning.maxUnreleased) connection.close('malformed');
    return true;
  }

  function settle(connection: Connection, unacked: Unacked): void {
    unacked.isStored = true;
    intake.release(connection, unacked.bytes);
    const queue = connection.unacked;
    const nowMs = now();
    while (queue[0]?.isStored) {
      const { proceed, sinceMs, qos, messageId } = queue.shift() as Unacked;
      if (connection.ending !== null) continue;
      if (qos === 1) acknowledge(connection, messageId);
      proceed?.();
      observe.acknowledged((nowMs - sinceMs) / 1_000);
    }
    intake.resume(connection);
    if (queue.length === 0 && lingering.size > 0) lingering.delete(connection);
  }

  /** A commit settles many messages, promise by promise: what it owes one connection leaves at once. */
  function acknowledge(connection: Connection, messageId: number): void {
    if (connection.pubacks.push(messageId) === 1) process.nextTick(writeOwed, connection);
  }

  function writeOwed(connection: Connection): void {
    const owed = connection.pubacks;
    connection.pubacks = [];
    writePubacks(connection, owed, now(), intake.resume);
  }

  /** No acknowledgement: the device will send it again. */
  function fail(connection: Connection, unacked: Unacked, error: unknown): void {
    const { stage } = connection;
    intake.release(connection, unacked.bytes);
    const index = connection.unacked.indexOf(unacked);
    if (index >= 0) connection.unacked.splice(index, 1);
    if (connection.unacked.length === 0) lingering.delete(connection);
    connection.close('not-stored');
    if (isUnavailable(error) || isGone(error) || stage === 'closed') return;
    log.error({ err: error, device: connection.device?.identity.uuid }, 'a message was not stored');
  }

  return {
    accept,
    acceptLeading,

    /** The device will send again what was not acknowledged; what it will not, waits on. */
    withdraw(connection: Connection): void {
      connection.withdrawal?.abort();
      if (connection.unacked.some(({ qos }) => qos === 0)) lingering.add(connection);
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

  function giveUp(connection: Connection): void {
    lingering.delete(connection);
    connection.close('not-stored');
    connection.withdrawal?.abort();
    connection.lastResort?.abort();
  }
}

/** Its own `up/`, and nothing that MQTT forbids in a topic name [MQTT-1.5.3-2] [MQTT-3.3.2-2]. */
export function isOwn(topic: string, device: Pick<Device, 'upPrefix'>): boolean {
  return topic.startsWith(device.upPrefix) && !/[\0+#]/.test(topic);
}

function signalOf(connection: Connection, qos: number): AbortSignal {
  if (qos > 0) return (connection.withdrawal ??= new AbortController()).signal;
  return (connection.lastResort ??= new AbortController()).signal;
}
