import type { Duplex } from 'node:stream';
import { connect, type ErrorWithSubackPacket, type MqttClient } from 'mqtt';
import { waitAtMost } from '../../src/lib/wait.ts';
import {
  createPublish,
  refusalCodeOf,
  stopReconnecting,
  takeUnacknowledged,
  writePuback,
} from './mqtt-js.ts';
import {
  type BridgeStatus,
  type BrokerAddress,
  type Finding,
  readError,
  readReasonCode,
  readRefusedSubscription,
} from './status.ts';
import type { MonotonicClock } from '../../src/lib/clock-readings.ts';

type BrokerClientOptions = {
  broker: BrokerAddress;
  maxPacketBytes: number;
  /** How many messages the broker may send ahead of their acknowledgements, MQTT 5 section 3.1.2.11.3. */
  maxUnacked: number;
  now: MonotonicClock;
  status: BridgeStatus;
  /** Takes a message. Nothing more is read before `next` is called. */
  onMessage: (topic: string, payload: Buffer, held: UnacknowledgedPacket, next: () => void) => void;
  onClosed: () => void;
  onSubscribed: () => void;
  /** A broker that serves this bridge was silent for 6 s; called again after each further 6 s. */
  onSilent: () => void;
};

/** How long the broker keeps the bridge's session, with the messages that wait there, while the bridge is away. */
const sessionExpirySeconds = 7 * 86_400;
const reconnectMs = 1_000;
/** How long to wait for the broker's first answer. */
const connectTimeoutMs = 10_000;
/** How long the broker has to answer a DISCONNECT. */
const goodbyeMs = 1_000;
/** Room for MQTT 5 properties before a payload of the largest size. */
const propertyBytes = 1_024;

/** A client that connects when told to, and whose session outlives its connections. */
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
    // Also retries after a refusal: the broker's users may be changed meanwhile.
    reconnectOnConnackError: true,
    connectTimeout: connectTimeoutMs,
    properties: {
      sessionExpiryInterval: sessionExpirySeconds,
      receiveMaximum: maxUnacked,
      maximumPacketSize: maxPacketBytes + propertyBytes,
    },
  });
}

/** The bridge's connection to the broker. A message is acknowledged when it is stored. */
export function createBrokerClient(options: BrokerClientOptions) {
  const { broker, now, status, onMessage, onClosed } = options;
  const filter = filterOf(broker);
  const client = openClient(options);
  const { promise: subscribed, resolve: onSubscribed } = Promise.withResolvers<void>();
  let isClosing = false;
  let isSubscribed = false;
  let isHeldUp = false;
  /** Why the connection ends. The first reason counts. */
  let finding: Finding | null = null;
  const find = (found: Finding) => (finding ??= found);

  const watchdog = startWatchdog({
    // While messages wait for room nothing is read, not even the answer to a ping.
    isHeldUp: () => isHeldUp,
    onQuiet: () => isSubscribed && client.sendPing(),
    onSilent() {
      if (isSubscribed) {
        find({ brokerError: 'no-answer' });
        // Reported now, because `onSilent` may end this client.
        status.disconnected({ brokerError: 'no-answer' });
        client.stream.destroy();
      }
      options.onSilent();
    },
  });

  takeUnacknowledged(client, (packet, stream, next) => {
    const { qos, messageId = 0 } = packet;
    const payload = Buffer.isBuffer(packet.payload) ? packet.payload : Buffer.from(packet.payload);
    const held: UnacknowledgedPacket = {
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
    // Otherwise the broker would close the connection (MQTT 5 section 3.2.2.3.13).
    const refusesShares = connack.properties?.sharedSubscriptionAvailable === false;
    if (broker.shareName === null || !refusesShares) return void subscribe();
    find({ brokerError: 'shared-subscriptions' });
    client.stream.destroy();
  });
  client.on('packetreceive', ({ cmd }) => {
    // Messages that wait in the session arrive before the SUBACK.
    if (isSubscribed || cmd === 'publish') watchdog.heard();
  });
  client.on('disconnect', ({ reasonCode = 0 }) => {
    find(readReasonCode(reasonCode));
    client.stream.destroy();
  });
  client.on('error', (error) => find(readError(error)));
  client.on('close', () => {
    let found: Finding = finding ?? { brokerError: 'closed' };
    if (found.brokerError === 'closed' && !isSubscribed)
      found = { ...found, brokerError: 'closed-at-connect' };
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
      watchdog.heard();
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
    watchdog.end();
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
      find({ brokerError: 'not-stored' });
      client.stream.destroy();
    },

    /** Stops the watchdog. */
    stopListening: watchdog.end,

    async close(): Promise<void> {
      end();
      // A broker that does not answer does not close the connection either.
      await waitAtMost(client.endAsync(!client.connected), goodbyeMs);
      client.stream.destroy();
    },

    /** Ends the connection at once. The broker keeps the session for the next bridge. */
    abandon(): void {
      end();
      client.end(true);
      // Also ends a connection whose orderly end is under way.
      client.stream.destroy();
    },
  };
}

/** What a bridge subscribes to: everything that devices send, or its share of it. */
export function filterOf({ shareName }: Pick<BrokerAddress, 'shareName'>): string {
  const all = 'devices/+/up/#';
  return shareName === null ? all : `$share/${shareName}/${all}`;
}

type WatchdogOptions = {
  /** The socket is not being read, so silence says nothing about the broker. */
  isHeldUp: () => boolean;
  /** Nothing was heard for a while: time to send a ping. */
  onQuiet: () => void;
  /** Nothing was heard for 6 s; called again after each further 6 s. */
  onSilent: () => void;
};

const tickMs = 500;
const quietTicks = 4;
/** A broker that is silent for this long, 6 s, counts as gone. */
const silentTicks = 12;

/**
 * Watches whether the broker is heard. It counts ticks instead of time: a process that got no processor finds its timer
 * due once, while what the broker has sent is still unread.
 */
function startWatchdog({ isHeldUp, onQuiet, onSilent }: WatchdogOptions) {
  let ticks = 0;
  const timer = setInterval(() => {
    if (isHeldUp()) return;
    ticks += 1;
    if (ticks === quietTicks) onQuiet();
    if (ticks < silentTicks) return;
    ticks = 0;
    onSilent();
  }, tickMs);
  return {
    heard: (): void => void (ticks = 0),
    end: (): void => clearInterval(timer),
  };
}

/** MQTT 5 section 2.4: no matching subscribers. */
const noMatchingSubscribers = 16;
/** The most unacknowledged messages, even if the broker allows more. */
const maxInFlight = 200;

type Message = {
  topic: string;
  payload: Buffer;
  resolve: () => void;
  reject: (error: Error) => void;
};

/**
 * Publishes to the broker, never more at once than it accepts. The client does not count, and a broker closes a
 * connection that exceeds its receive maximum (MQTT 5 section 3.3.4).
 */
function createBrokerPublisher(
  client: MqttClient,
  status: Pick<BridgeStatus, 'messageOut' | 'refused'>,
) {
  const publishOnce = createPublish(client);
  const waiting: Message[] = [];
  const sent = new Set<Message>();

  /** Half of the receive maximum, because after a reconnect the client resends in-flight messages by itself. */
  const mostSent = () =>
    Math.max(1, Math.min(maxInFlight, (client.serverProperties?.receiveMaximum ?? 65_535) >> 1));

  function advance(): void {
    while (client.connected && sent.size < mostSent()) {
      const message = waiting.shift();
      if (!message) return;
      send(message);
    }
  }

  function send(message: Message): void {
    sent.add(message);
    publishOnce(message.topic, message.payload, (error, reasonCode) => {
      sent.delete(message);
      if (error) {
        // Without a reason code the connection was lost.
        if (refusalCodeOf(error) !== null) status.refused('not-published');
        message.reject(error);
      } else {
        status.messageOut();
        if (reasonCode !== noMatchingSubscribers) message.resolve();
        else message.reject(new Error('nobody listens'));
      }
      advance();
    });
  }

  client.on('close', () => {
    const error = new Error('the connection to the broker ended');
    for (const { reject } of [...sent, ...waiting.splice(0)]) reject(error);
    sent.clear();
  });

  /** Resolves once the broker has the message for a subscriber. Rejects without a subscriber or a connection. */
  return function publish(topic: string, payload: Buffer): Promise<void> {
    if (!client.connected) return Promise.reject(new Error('the broker is unreachable'));
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    waiting.push({ topic, payload, resolve, reject });
    advance();
    return promise;
  };
}

/** A message from the broker on its way to the database. */
type UnacknowledgedPacket = {
  bytes: number;
  sinceMs: number;
  isStored: boolean;
  /** With QoS 0 the broker waits for no acknowledgement. */
  qos: number;
  messageId: number;
  /** The connection it came over. It may not be acknowledged on any other. */
  stream: Duplex;
};

type UnackedLimits = { maxMessages: number; maxBytes: number };

/**
 * Messages that wait for their commit. Acknowledgements leave in the order in which the messages arrived
 * [MQTT-4.6.0-2], whatever the order of the commits.
 */
export function createUnacknowledged(
  limits: UnackedLimits,
  onAcknowledged: (held: UnacknowledgedPacket) => void,
) {
  let queue: UnacknowledgedPacket[] = [];
  let messages = 0;
  let bytes = 0;
  let onFree: (() => void) | null = null;
  let isPaused = false;

  const mayTakeMore = () => !isPaused && messages < limits.maxMessages && bytes < limits.maxBytes;

  function release(held: UnacknowledgedPacket): void {
    messages -= 1;
    bytes -= held.bytes;
    goOn();
  }

  function goOn(): void {
    if (!onFree || !mayTakeMore()) return;
    const resume = onFree;
    onFree = null;
    resume();
  }

  return {
    hold(held: UnacknowledgedPacket): void {
      messages += 1;
      bytes += held.bytes;
      if (held.qos > 0) queue.push(held);
    },

    /** Calls back once there is room for another message, which may be at once. */
    whenFree(resume: () => void): void {
      if (mayTakeMore()) resume();
      else onFree = resume;
    },

    /** While paused there is no room. */
    pause(isToPause: boolean): void {
      isPaused = isToPause;
      goOn();
    },

    /** The message is committed, or there was nothing to commit. */
    settle(held: UnacknowledgedPacket): void {
      held.isStored = true;
      release(held);
      while (queue[0]?.isStored) {
        const next = queue.shift() as UnacknowledgedPacket;
        writePuback(next.stream, next.messageId);
        onAcknowledged(next);
      }
    },

    /** This delivery will not be stored. */
    giveUp: release,

    /** The connection is gone. The broker redelivers its messages over the next one. */
    forgetOrder: () => void (queue = []),

    count: () => messages,
  };
}
