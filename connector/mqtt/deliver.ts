import type { AedesPublishPacket, Client } from 'aedes';
import type { DownTopic } from '../../src/contract/uplink.ts';
import { findConnection, type Connection, type Device } from './connection.ts';
import type { DownlinkChannel, Encoded } from '../device/downlink-queue.ts';

/** The way to a device over its MQTT connection. */
export function channelOf(
  connection: Connection,
  device: Device,
  now: () => number,
): DownlinkChannel {
  return {
    device: device.identity,
    accepts: (topic) => grantedQos(connection, topic) !== null,
    send: (message) => send(connection, device, message, now),
  };
}

/** The granted QoS at which a topic is delivered, the highest of its filters [MQTT-3.3.5-1]; null: none. */
function grantedQos({ subscriptions }: Connection, topic: DownTopic): number | null {
  let granted: number | null = null;
  for (const { qos, topics } of subscriptions)
    if (topics.includes(topic)) granted = Math.max(granted ?? 0, qos);
  return granted;
}

function send(
  connection: Connection,
  { downPrefix }: Device,
  message: Encoded,
  now: () => number,
): Promise<void> {
  const { client } = connection;
  const qos: 0 | 1 = grantedQos(connection, message.topic) === 0 ? 0 : 1;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (!client || connection.stage === 'closed') {
    reject(new Error('connection closed'));
    return promise;
  }
  const finish = (error?: Error | null) => (error ? reject(error) : resolve());
  const packet = {
    cmd: 'publish' as const,
    topic: downPrefix + message.topic,
    payload: message.body,
    qos,
    retain: false,
    dup: false,
  };
  if (qos === 1) {
    connection.lastMessageId = (connection.lastMessageId % 65_535) + 1;
    connection.sent = { messageId: connection.lastMessageId, sinceMs: now(), finish };
    // aedes calls it without asking whether it is there.
    client.publish(packet, () => undefined);
  } else client.publish(packet, finish);
  return promise;
}

/** aedes asks before it writes a message: the place to give it the identifier that we wait for. */
export function authorizeForward(client: Client, packet: AedesPublishPacket): AedesPublishPacket {
  const messageId = findConnection(client)?.sent?.messageId;
  if (packet.qos > 0 && messageId !== undefined) packet.messageId = messageId;
  return packet;
}

/** A PUBACK arrived. */
export function acknowledge(client: Client, messageId: number | undefined): void {
  const connection = findConnection(client);
  if (!connection?.sent || connection.sent.messageId !== messageId) return;
  const { finish } = connection.sent;
  connection.sent = null;
  finish(null);
}

/** The connection is gone: nothing that was sent will be acknowledged any more. */
export function giveUpSent(connection: Connection): void {
  connection.sent?.finish(new Error('connection closed'));
  connection.sent = null;
  connection.downlinks?.end();
}
