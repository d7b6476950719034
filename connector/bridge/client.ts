import { connect, type MqttClient } from 'mqtt';
import { waitAtMost } from '../../src/lib/wait.ts';
import type { ErrorWithSubackPacket } from 'mqtt';
import { stopReconnecting, takeUnacknowledged } from './mqtt-js.ts';
import type { BrokerAddress } from './ports.ts';
import { createBrokerPublisher } from './publisher.ts';
import { startPulse } from './pulse.ts';
import type { BridgeStatus } from './status.ts';
import { readError, readReasonCode, readRefusedSubscription } from './trouble.ts';
import type { Finding } from './trouble.ts';
import type { HeldPacket } from './unacknowledged.ts';

export type BrokerClientOptions = {
  broker: BrokerAddress;
  maxPacketBytes: number;
  /** Messages that the broker may send ahead of their acknowledgements, MQTT 5 section 3.1.2.11.3. */
  maxUnacked: number;
  now: () => number;
  status: BridgeStatus;
  /** Takes a message; nothing more is read before `next` is called. */
  onMessage: (topic: string, payload: Buffer, held: HeldPacket, next: () => void) => void;
  onClosed: () => void;
  onSubscribed: () => void;
  /** Nothing was heard of a broker that serves this bridge for 6 s; then again and again. */
  onSilent: () => void;
};

/** Time the broker keeps the bridge's session, and with it what waits there, while it is away. */
const sessionExpirySeconds = 7 * 86_400;
const reconnectMs = 1_000;
/** For the broker's first answer. */
const connectTimeoutMs = 10_000;
/** How long the broker has to answer a DISCONNECT. */
const goodbyeMs = 1_000;
/** Properties of MQTT 5 in front of a payload that is as large as allowed. */
const propertyBytes = 1_024;

/** A client that connects when it is told to, and whose session outlives its connections. */
function openClient({ broker, maxPacketBytes, maxUnacked }: BrokerClientOptions): MqttClient {
  return connect(broker.url, {
    manualConnect: true,
    protocolVersion: 5,
    clientId: broker.clientId,
    ...(broker.username === undefined ? {} : { username: broker.username }),
    ...(broker.password === undefined ? {} : { password: broker.password }),
    ...(broker.ca === undefined ? {} : { ca: broker.ca }),
    clean: false,
    resubscribe: false,
    reconnectPeriod: reconnectMs,
    // Also after a refusal: what the broker is told about its users may change.
    reconnectOnConnackError: true,
    connectTimeout: connectTimeoutMs,
    properties: {
      sessionExpiryInterval: sessionExpirySeconds,
      receiveMaximum: maxUnacked,
      maximumPacketSize: maxPacketBytes + propertyBytes,
    },
  });
}

/** The bridge's connection to the broker: a message is acknowledged when it is stored. */
export function createBrokerClient(options: BrokerClientOptions) {
  const { broker, now, status, onMessage, onClosed } = options;
  const filter = filterOf(broker);
  const client = openClient(options);
  const { promise: subscribed, resolve: onSubscribed } = Promise.withResolvers<void>();
  let isClosing = false;
  let isSubscribed = false;
  let isHeldUp = false;
  /** Why the connection ends: the first reason counts. */
  let finding: Finding | null = null;
  const find = (found: Finding) => (finding ??= found);

  const pulse = startPulse({
    // While messages wait for room nothing is read, not even the answer to a ping.
    isHeldUp: () => isHeldUp,
    onQuiet: () => isSubscribed && client.sendPing(),
    onSilent() {
      if (isSubscribed) {
        find({ trouble: 'no-answer' });
        // Said now: whoever is told next may end this client.
        status.disconnected({ trouble: 'no-answer' });
        client.stream.destroy();
      }
      options.onSilent();
    },
  });

  takeUnacknowledged(client, (packet, stream, next) => {
    const { qos, messageId = 0 } = packet;
    const payload = Buffer.isBuffer(packet.payload) ? packet.payload : Buffer.from(packet.payload);
    const held: HeldPacket = {
      qos,
      messageId,
      bytes: payload.length,
      isStored: false,
      sinceMs: now(),
      stream,
    };
    status.messageIn();
    isHeldUp = true;
    onMessage(packet.topic, payload, held, () => {
      isHeldUp = false;
      next();
    });
  });
  client.on('connect', (connack) => {
    // The broker would close the connection (MQTT 5 section 3.2.2.3.13).
    const refusesShares = connack.properties?.sharedSubscriptionAvailable === false;
    if (broker.shareName === null || !refusesShares) return void subscribe();
    find({ trouble: 'shared-subscriptions' });
    client.stream.destroy();
  });
  client.on('packetreceive', ({ cmd }) => {
    // What waits in the session comes before the answer to the subscription.
    if (isSubscribed || cmd === 'publish') pulse.heard();
  });
  client.on('disconnect', ({ reasonCode = 0 }) => {
    find(readReasonCode(reasonCode));
    client.stream.destroy();
  });
  client.on('error', (error) => find(readError(error)));
  client.on('close', () => {
    let found: Finding = finding ?? { trouble: 'closed' };
    if (found.trouble === 'closed' && !isSubscribed)
      found = { ...found, trouble: 'closed-at-connect' };
    finding = null;
    isSubscribed = false;
    isHeldUp = false;
    onClosed();
    if (!isClosing) status.disconnected(found);
  });

  async function subscribe(): Promise<void> {
    try {
      await client.subscribeAsync(filter, { qos: 1 });
      isSubscribed = true;
      pulse.heard();
      status.connected();
      options.onSubscribed();
      onSubscribed();
    } catch (error) {
      if (isClosing || !client.connected) return;
      const { packet } = error as Partial<ErrorWithSubackPacket>;
      const code = packet?.granted[0];
      find(
        typeof code === 'number'
          ? readRefusedSubscription(code, broker.shareName !== null)
          : readError(error as Error),
      );
      client.stream.destroy();
    }
  }

  function end(): void {
    isClosing = true;
    pulse.end();
    stopReconnecting(client);
  }

  return {
    connect: () => void client.connect(),
    /** Resolves with the first subscription. */
    subscribed,

    publish: createBrokerPublisher(client, status),

    /** Reconnects, so that the broker redelivers what is not acknowledged. */
    restart(): void {
      if (isClosing) return;
      find({ trouble: 'not-stored' });
      client.stream.destroy();
    },

    /** Stops watching whether the broker is heard. */
    stopListening: pulse.end,

    async close(): Promise<void> {
      end();
      // A broker that does not answer does not end the connection either.
      await waitAtMost(client.endAsync(!client.connected), goodbyeMs);
      client.stream.destroy();
    },

    /** Ends the connection at once; the broker keeps the session for whoever is next. */
    abandon(): void {
      end();
      client.end(true);
      // Also where an orderly end is under way.
      client.stream.destroy();
    },
  };
}

/** What a bridge subscribes to: what all devices send, or its share of that. */
export function filterOf({ shareName }: Pick<BrokerAddress, 'shareName'>): string {
  const all = 'devices/+/up/#';
  return shareName === null ? all : `$share/${shareName}/${all}`;
}
