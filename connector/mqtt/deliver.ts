import type { AedesPublishPacket, Client } from 'aedes';
import type { DownTopic } from '../../src/contract/topic.ts';
import { findConnection } from './connection.ts';
import type { Connection, Device, Sent, Subscription } from './connection.ts';
import type { DownlinkChannel, Encoded } from '../device/downlink-sender.ts';
import { write } from './inflight.ts';
import { expirySecondsOf } from './v5-deliver.ts';
import { publish as v5Publish, publishBytes } from './v5-write.ts';

export type DeliverDeps = {
  /** Forward only, ms. */
  now: () => number;
  /** Ms since the epoch. */
  clock: () => number;
  /** It is larger than the device takes, and is not sent. */
  onTooLarge: (device: Device, packet: { topic: string; bytes: number; mostBytes: number }) => void;
};

/** The way to a device over its MQTT connection. */
export function channelOf(
  connection: Connection,
  device: Device,
  deps: DeliverDeps,
): DownlinkChannel {
  return {
    device: device.identity,
    accepts: (topic) => findSubscription(connection, topic) !== null,
    fits: (message) => fits(connection, device, message, deps),
    send: (message) => send(connection, message, deps),
  };
}

/** [MQTT-3.1.2-24] [MQTT-3.3.2-5] */
function fits(
  connection: Connection,
  device: Device,
  message: Encoded,
  { clock, onTooLarge }: DeliverDeps,
): boolean {
  const { v5 } = connection;
  if (!v5) return true;
  const expirySeconds = expirySecondsOf(message, clock());
  if (expirySeconds !== null && expirySeconds <= 0) return false;
  if (v5.maxPacketBytes === Infinity) return true;
  const topic = device.downPrefix + message.topic;
  const bytes = publishBytes({ topic, qos: 1, messageId: 1, body: message.body, expirySeconds });
  if (bytes <= v5.maxPacketBytes) return true;
  onTooLarge(device, { topic, bytes, mostBytes: v5.maxPacketBytes });
  return false;
}

/** By which a topic is delivered: that with the highest QoS [MQTT-3.3.5-1]; null: none. */
function findSubscription({ subscriptions }: Connection, topic: DownTopic): Subscription | null {
  let found: Subscription | null = null;
  for (const one of subscriptions)
    if (one.topics.includes(topic) && one.qos > (found?.qos ?? -1)) found = one;
  return found;
}

function send(
  connection: Connection,
  message: Encoded,
  { now, clock }: DeliverDeps,
): Promise<void> {
  const { client } = connection;
  const subscription = findSubscription(connection, message.topic);
  const qos: 0 | 1 = subscription?.qos === 0 ? 0 : 1;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  if (
    !client ||
    !subscription ||
    connection.stage === 'closed' ||
    (connection.v5 && connection.ending)
  ) {
    reject(new Error('connection closed'));
    return promise;
  }
  const finish = (error?: Error | null) => (error ? reject(error) : resolve());
  const topic = subscription.prefix + message.topic;
  if (connection.v5) {
    const messageId = qos === 1 ? expectAck(connection, { topic, sinceMs: now(), finish }) : 0;
    const expirySeconds = expirySecondsOf(message, clock());
    const { body } = message;
    write(connection, v5Publish({ topic, qos, messageId, body, expirySeconds }), now());
    // A socket that is lost loses it, as any message of QoS 0.
    if (qos === 0) finish();
    return promise;
  }
  const packet = {
    cmd: 'publish' as const,
    topic,
    payload: message.body,
    qos,
    retain: false,
    dup: false,
  };
  if (qos === 1) {
    expectAck(connection, { topic, sinceMs: now(), finish });
    // aedes calls it without asking whether it is there.
    client.publish(packet, () => undefined);
  } else client.publish(packet, finish);
  return promise;
}

/** Gives the identifier of the message whose PUBACK is waited for. */
function expectAck(connection: Connection, sent: Omit<Sent, 'messageId'>): number {
  const messageId = (connection.lastMessageId % 65_535) + 1;
  connection.lastMessageId = messageId;
  connection.sent = { ...sent, messageId };
  return messageId;
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
