import type { Client, PublishPacket } from 'aedes';
import { findUpTopic, isBelow } from '../../src/contract/topic.ts';
import type { Acknowledger } from './inflight.ts';
import { findConnection, type Connection, type Device } from './connection.ts';
import { withdrawnError } from './held-messages.ts';
import type { HeldMessage, HeldMessages, PassOn } from './held-messages.ts';
import type { RateStore } from '../device/rates.ts';
import type { ConnectorLimits, Observer, Tuning } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import { readPublish } from './publish-frame.ts';
import { reason } from './reason-codes.ts';
import { CountedUnacked, Unacked, type UnackedRoom } from './unacked.ts';
import { parseUplink } from '../device/parse-uplink.ts';
import { createUnknownMemberTurns } from '../device/unknown-members.ts';

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
    unacked.uplink = uplink;
    if (unacked.isWithdrawn) return unacked.failed(withdrawnError());
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
  /** A device published where it may not. */
  onForeignTopic: (device: Device, message: HeldMessage) => void;
};

/** Parsed, a payload takes about so many times its bytes; it is kept besides. */
const parsedFactor = 4;

export type Publisher = ReturnType<typeof createPublisher>;

/** Takes what devices publish. */
export function createPublisher(deps: PublishDeps) {
  const { clock, room, acknowledger, holding, passOn, tuning, now, onForeignTopic } = deps;

  /** Takes the will of a connection that has ended, which is all that aedes publishes: nobody will send it again. */
  function acceptWill(
    client: Client | null,
    packet: PublishPacket,
    done: (error?: Error | null) => void,
  ): void {
    const connection = findConnection(client);
    const device = connection?.device;
    // A will left behind by another process has no client. None is ever kept.
    if (!connection || !device || packet !== connection.will)
      return done(new Error('nobody publishes this'));
    if (connection.ending === 'shutdown') return done(new Error('the service stops'));
    const { topic } = packet;
    acknowledger.linger(connection);
    const payload = packet.payload as Buffer;
    hold(device, connection, { topic, qos: 0, messageId: 0, payload }, now(), false);
    done();
  }

  /** Takes the plain messages that a chunk begins with; gives the rest of it. */
  function acceptLeading(connection: Connection, chunk: Buffer): Buffer | null {
    const { device } = connection;
    if (!device || connection.ending !== null) return chunk;
    let at = 0;
    while (at < chunk.length) {
      const frame = readPublish(chunk, at, device.upPrefix, connection.v5 !== null);
      if (!frame || findUpTopic(frame.topic, device.upPrefix) === null) break;
      hold(device, connection, frame, connection.heardMs, false);
      at = frame.end;
    }
    if (at === 0) return chunk;
    return at < chunk.length ? chunk.subarray(at) : null;
  }

  /** Takes a message that was checked. */
  function accept(connection: Connection, { topic, qos, messageId, payload }: HeldMessage): void {
    const { device } = connection;
    if (!device || connection.ending !== null) return;
    const message = { topic, qos, messageId, payload };
    if (!isBelow(topic, device.upPrefix)) {
      onForeignTopic(device, message);
      return connection.breakOff('foreign-topic');
    }
    // Sent again before its PUBREL: it is stored, or about to be. [MQTT-4.3.3-2]
    const isRepeated = qos === 2 && !reserve(connection, messageId);
    if (connection.isBroken) return;
    hold(device, connection, message, connection.heardMs, isRepeated);
  }

  /** False where the message is known already. Too many of them end the connection. */
  function reserve(connection: Connection, messageId: number): boolean {
    const unreleased = (connection.unreleased ??= new Set());
    if (unreleased.has(messageId)) return false;
    unreleased.add(messageId);
    // The receive maximum counts until PUBCOMP, and a client of MQTT 5 was told of it. Section 3.3.4.
    const most = connection.v5 ? tuning.maxUnackedMessages : tuning.maxUnreleased;
    if (unreleased.size > most) connection.breakOff('malformed', reason.receiveMaximumExceeded);
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
    });
    // An empty array that is pushed to makes room for seventeen: nearly all of these hold one.
    if (connection.unacked.length === 0) connection.unacked = [unacked];
    else connection.unacked.push(unacked);
    if (isRepeated) unacked.stored();
    else if (!holding.take(device, message, unacked)) passOn(device, message, unacked, clock());
  }

  return { acceptWill, acceptLeading, accept };
}
