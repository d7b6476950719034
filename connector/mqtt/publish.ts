import type { Client, PublishPacket } from 'aedes';
import { findUpTopic } from '../../src/contract/topic.ts';
import type { Acknowledger } from './ack.ts';
import { findConnection, type Connection, type Device, type Proceed } from './connection.ts';
import type { HeldMessage, HeldMessages, PassOn } from './held-messages.ts';
import type { RateStore } from '../device/device-rates.ts';
import type { ConnectorLimits, Observer, Tuning } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import { readPublish } from './publish-frame.ts';
import { reason } from './reason-codes.ts';
import { CountedUnacked, Unacked, type UnackedRoom } from './unacked.ts';
import { parseUplink } from '../device/parse-uplink.ts';
import { createUnknownMemberTurns } from '../device/unknown-members.ts';
import type { V5Publish } from './v5-publish.ts';

type PassOnDeps = {
  ports: Pick<ConnectorPorts, 'ingest'>;
  rateStore: RateStore;
  limits: Pick<ConnectorLimits, 'rejectionsPerMessage'>;
  observe: Pick<Observer, 'message'>;
  now: () => number;
};

export function createPassOn({ ports, rateStore, limits, observe, now }: PassOnDeps): PassOn {
  const { rejectionsPerMessage: max } = limits;
  const takeTurn = createUnknownMemberTurns(now);
  return function passOn(device, { topic, payload }, unacked, arrivedTs) {
    const mayTell = () => takeTurn(device.identity.uuid);
    const uplink = parseUplink(topic, device.upPrefix, payload, arrivedTs, max, mayTell);
    observe.message(uplink.content.kind);
    // What is wrong costs as much as what is right, and an event as much as a measurement.
    rateStore.takeItems(device.rates, uplink.items, unacked.sinceMs);
    ports.ingest(device.identity, uplink, unacked);
  };
}

export type PublishDeps = {
  clock: () => number;
  room: Pick<UnackedRoom, 'hold' | 'release'>;
  acknowledger: Acknowledger;
  holding: Pick<HeldMessages, 'take'>;
  passOn: PassOn;
  tuning: Tuning;
  now: () => number;
};

/** Parsed, a payload takes about so many times its bytes; it is kept besides. */
const parsedFactor = 4;
const empty = Buffer.alloc(0);

export type Publisher = ReturnType<typeof createPublisher>;

/** Takes what devices publish. */
export function createPublisher(deps: PublishDeps) {
  const { clock, room, acknowledger, holding, passOn, tuning, now } = deps;

  /**
   * Takes a message that aedes has parsed. aedes goes on with a packet (PUBREC, and the next read)
   * when `done` is called: that is once the message, and every one before it on this connection, is
   * committed.
   */
  function accept(client: Client | null, packet: PublishPacket, done: Proceed): void {
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
    if (isWill) acknowledger.linger(connection);
    const message = { topic, qos, messageId, payload };
    hold(device, connection, message, now(), done, isRepeated);
  }

  /** Takes the plain messages that a chunk begins with; gives the rest of it. */
  function acceptLeading(connection: Connection, chunk: Buffer): Buffer | null {
    const { device } = connection;
    if (!device || connection.ending !== null) return chunk;
    let at = 0;
    while (at < chunk.length) {
      const frame = readPublish(chunk, at, device.upPrefix, connection.v5 !== null);
      if (!frame || findUpTopic(frame.topic, device.upPrefix) === null) break;
      hold(device, connection, frame, connection.heardMs, null, false);
      at = frame.end;
    }
    if (at === 0) return chunk;
    return at < chunk.length ? chunk.subarray(at) : null;
  }

  /** Takes a message of MQTT 5 that was checked: aedes does not hear of it. */
  function acceptV5(connection: Connection, { topic, qos, messageId, payload }: V5Publish): void {
    const { device } = connection;
    if (!device) return;
    if (!isOwn(topic, device)) return connection.close('foreign-topic');
    const isRepeated = qos === 2 && !reserve(connection, messageId);
    if (connection.ending !== null) return;
    const message = { topic, qos, messageId, payload };
    hold(device, connection, message, connection.heardMs, null, isRepeated);
  }

  /** False where the message is known already. Too many of them end the connection. */
  function reserve(connection: Connection, messageId: number): boolean {
    const unreleased = (connection.unreleased ??= new Set());
    if (unreleased.has(messageId)) return false;
    unreleased.add(messageId);
    // The receive maximum counts until PUBCOMP, and a client of MQTT 5 was told of it. Section 3.3.4.
    const most = connection.v5 ? tuning.maxUnackedMessages : tuning.maxUnreleased;
    if (unreleased.size > most) connection.close('malformed', reason.receiveMaximumExceeded);
    return true;
  }

  /**
   * Remembers whom to acknowledge, and passes the message on: to ingest, or to those that wait because of their account.
   * `sinceMs`: when it was read. `isRepeated`: it is stored, or about to be.
   */
  function hold(
    device: Device,
    connection: Connection,
    message: HeldMessage,
    sinceMs: number,
    proceed: Proceed | null,
    isRepeated: boolean,
  ): void {
    const { qos, messageId, payload } = message;
    const bytes = payload.length * parsedFactor + tuning.messageOverheadBytes;
    const Kind = connection.v5 && qos > 0 ? CountedUnacked : Unacked;
    const unacked = new Kind(acknowledger, room, connection, {
      qos,
      messageId,
      bytes,
      sinceMs,
      proceed,
    });
    // An empty array that is pushed to makes room for seventeen: nearly all of these hold one.
    if (connection.unacked.length === 0) connection.unacked = [unacked];
    else connection.unacked.push(unacked);
    if (isRepeated) unacked.stored();
    else if (!holding.take(device, message, unacked)) passOn(device, message, unacked, clock());
  }

  return { accept, acceptLeading, acceptV5 };
}

/** Its own `up/`, and nothing that MQTT forbids in a topic name [MQTT-1.5.3-2] [MQTT-3.3.2-2]. */
export function isOwn(topic: string, device: Pick<Device, 'upPrefix'>): boolean {
  return topic.startsWith(device.upPrefix) && !/[\0+#]/.test(topic);
}
