import type { Client, PublishPacket } from 'aedes';
import type { Clock, MonotonicClock } from '../../src/lib/clock-readings.ts';
import { isBelow, upTopicNames } from '../../src/contract/uplink.ts';
import type { DeviceLimits } from '../device/limits.ts';
import type { Receive } from '../device/receive.ts';
import type { Tuning } from '../ports.ts';
import { type Acknowledger, CountedUnacked, Unacked, type UnackedBudget } from './acknowledge.ts';
import type { AccountBackpressure, ParkedMessage } from './backpressure.ts';
import { type Connection, type Device, findConnection } from './connection.ts';
import { readPublish } from './frames.ts';
import { reason } from './v5.ts';

type PublishDeps = {
  clock: Clock;
  deviceLimits: Pick<DeviceLimits, 'charge'>;
  budget: Pick<UnackedBudget, 'reserve' | 'release'>;
  acknowledger: Acknowledger;
  backpressure: Pick<AccountBackpressure, 'mustWait' | 'park'>;
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
    } else if (backpressure.mustWait(device.identity)) backpressure.park(device, message, unacked);
    else receive(device, { topic, payload, arrivedTs: clock() }, unacked);
  }

  return { acceptWill, acceptLeading, accept };
}
