import type { AedesPublishPacket, Client, Subscription as Requested } from 'aedes';
import { type DownTopic, findMatchedTopics } from '../../src/contract/uplink.ts';
import {
  type DownlinkChannel,
  type DownlinkDeps,
  DownlinkQueue,
  type Encoded,
} from '../device/downlinks.ts';
import type { ConnectorLimits } from '../ports.ts';
import {
  type Connection,
  type Device,
  findConnection,
  type Sent,
  type Subscription,
} from './connection.ts';
import { maxFilterLength } from './frames.ts';
import { publish as v5Publish, publishBytes } from './v5.ts';
import type { Clock, MonotonicClock, WallMs } from '../../src/lib/clock-readings.ts';

/** A filter and what it was granted: a QoS, or 128. */
type Granted = { topic: string; qos: number };
const refused = 128;

type Done = (error: Error | null, subscription?: Requested | null) => void;

export type Subscriber = ReturnType<typeof createSubscriber>;

/** A device may subscribe to its own `down/…`; anything else is answered 128, MQTT 3.1.1 section 3.9.3. */
export function createSubscriber(
  limits: ConnectorLimits,
  deps: DownlinkDeps,
  deliver: DeliverDeps,
) {
  return {
    authorize(client: Client, requested: Requested, done: Done): void {
      const connection = findConnection(client);
      const { topic: filter, qos } = requested;
      const prefix = connection?.device?.downPrefix;
      if (!connection || prefix === undefined || filter.length > maxFilterLength)
        return done(null, null);
      const topics = findMatchedTopics(filter, prefix);
      if (topics === null) return done(null, null);
      const others = connection.subscriptions.filter((known) => known.filter !== filter);
      if (others.length >= limits.maxSubscriptions) return done(null, null);
      const spelled = filter.slice(0, prefix.length);
      connection.subscriptions = [...others, { filter, qos, topics, prefix: spelled }];
      done(null, requested);
    },

    /** The SUBACK is on its way. After each subscription the device is sent what it has to know. */
    onSubscribed(client: Client, granted: Granted[]): void {
      const connection = findConnection(client);
      if (!connection?.device || connection.stage === 'closed') return;
      const { device } = connection;
      const topics = new Set<DownTopic>();
      for (const { topic, qos } of granted)
        if (qos !== refused)
          for (const matched of findMatchedTopics(topic, device.downPrefix) ?? [])
            topics.add(matched);
      if (topics.size === 0) return;
      connection.downlinks ??= new DownlinkQueue(channelOf(connection, device, deliver), deps);
      connection.downlinks.subscribed([...topics]);
    },

    onUnsubscribed(client: Client, filters: string[]): void {
      const connection = findConnection(client);
      if (!connection) return;
      connection.subscriptions = connection.subscriptions.filter(
        ({ filter }) => !filters.includes(filter),
      );
    },
  };
}

type DeliverDeps = {
  /** A monotonic clock, ms. */
  now: MonotonicClock;
  /** Ms since the epoch. */
  clock: Clock;
  /** The packet is larger than the device accepts, and is not sent. */
  onTooLarge: (device: Device, packet: { topic: string; bytes: number; mostBytes: number }) => void;
};

/** The way to a device over its MQTT connection. */
function channelOf(connection: Connection, device: Device, deps: DeliverDeps): DownlinkChannel {
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

/** The subscription that a topic is delivered by: the one with the highest QoS [MQTT-3.3.5-1]. Null: none. */
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
    connection.write(v5Publish({ topic, qos, messageId, body, expirySeconds }), now());
    // At QoS 0 a socket that breaks loses the message.
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
    // aedes calls this callback without checking that there is one.
    client.publish(packet, () => undefined);
  } else client.publish(packet, finish);
  return promise;
}

/** Registers a message that waits for its PUBACK. Returns its identifier. */
function expectAck(connection: Connection, sent: Omit<Sent, 'messageId'>): number {
  const messageId = (connection.lastMessageId % 65_535) + 1;
  connection.lastMessageId = messageId;
  connection.sent = { ...sent, messageId };
  return messageId;
}

/** aedes calls this before it writes a message, which lets us set the identifier that we wait for. */
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

/** The connection is gone: nothing that was sent will be acknowledged. */
export function giveUpSent(connection: Connection): void {
  connection.sent?.finish(new Error('connection closed'));
  connection.sent = null;
  connection.downlinks?.end();
}

/** A text for a display is useful for a day. */
const displayLifeMs = 86_400_000;

/**
 * For how many seconds a message is still useful at `nowTs`, ms since the epoch; null: without a limit. The message
 * carries the remainder, so that a broker or gateway behind the device continues the count. [MQTT-3.3.2-6]
 */
function expirySecondsOf({ topic, body }: Encoded, nowTs: WallMs): number | null {
  if (topic !== 'display' && topic !== 'command') return null;
  const { ts, expiresTs } = JSON.parse(body.toString()) as { ts?: unknown; expiresTs?: unknown };
  const endTs = typeof ts === 'number' ? ts + displayLifeMs : expiresTs;
  return typeof endTs === 'number' ? Math.ceil((endTs - nowTs) / 1_000) : null;
}
