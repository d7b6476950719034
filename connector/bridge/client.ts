import { connect } from 'mqtt';
import type { Log } from '../options.ts';
import type { BrokerAddress } from './ports.ts';
import { createPublisher } from './publisher.ts';
import type { Held } from './unacknowledged.ts';

export type BrokerClientOptions = {
  broker: BrokerAddress;
  maxPacketBytes: number;
  /** Messages that the broker may send ahead of their acknowledgements, MQTT 5 section 3.1.2.11.3. */
  maxUnacked: number;
  log: Log;
  /** Takes a message; nothing more is read before `next` is called. */
  onMessage: (topic: string, payload: Buffer, held: Held, next: () => void) => void;
  onClosed: () => void;
};

/** Time the broker keeps the bridge's session, and with it what waits there, while it is away. */
const sessionExpirySeconds = 7 * 86_400;
const reconnectMs = 1_000;
/** Properties of MQTT 5 in front of a payload that is as large as allowed. */
const propertyBytes = 1_024;

/** For the client: this message is not acknowledged yet. */
const later = new Error('acknowledged after the commit');

export type BrokerClient = ReturnType<typeof createBrokerClient>;

/**
 * The bridge's connection to the broker. By itself the client reads one message, waits, acknowledges
 * and reads the next: with a commit in between that would be one message a transaction, and nothing
 * else, not even an answer to a ping, would be read meanwhile. So it is told at once that there is
 * nothing to acknowledge, and the acknowledgement is written when the message is stored.
 */
export function createBrokerClient(options: BrokerClientOptions) {
  const { broker, maxPacketBytes, maxUnacked, log, onMessage, onClosed } = options;
  const all = 'devices/+/up/#';
  const filter = broker.shareName === null ? all : `$share/${broker.shareName}/${all}`;
  const client = connect(broker.url, {
    manualConnect: true,
    protocolVersion: 5,
    clientId: broker.clientId,
    ...(broker.username === undefined ? {} : { username: broker.username }),
    ...(broker.password === undefined ? {} : { password: broker.password }),
    ...(broker.ca === undefined ? {} : { ca: broker.ca }),
    clean: false,
    resubscribe: false,
    reconnectPeriod: reconnectMs,
    properties: {
      sessionExpiryInterval: sessionExpirySeconds,
      receiveMaximum: maxUnacked,
      maximumPacketSize: maxPacketBytes + propertyBytes,
    },
  });
  const { promise: subscribed, resolve: onSubscribed } = Promise.withResolvers<void>();
  let isClosing = false;
  let isAway = false;

  client.handleMessage = (packet, callback) => {
    const { qos, messageId = 0 } = packet;
    const payload = Buffer.isBuffer(packet.payload) ? packet.payload : Buffer.from(packet.payload);
    const held: Held = {
      qos,
      messageId,
      bytes: payload.length,
      isStored: false,
      sinceMs: performance.now(),
      stream: client.stream,
    };
    onMessage(packet.topic, payload, held, () => callback(qos > 0 ? later : undefined));
  };
  client.on('connect', () => void subscribe());
  client.on('close', onClosed);
  client.on('error', (err) => {
    // It is tried every second: once is enough to be told.
    if (!isAway) log.warn({ err, broker: broker.url }, 'the broker is not to be had');
    isAway = true;
  });
  client.on('disconnect', ({ reasonCode }) =>
    log.warn({ reasonCode, broker: broker.url }, 'the broker closed the connection'),
  );

  async function subscribe(): Promise<void> {
    try {
      await client.subscribeAsync(filter, { qos: 1 });
      isAway = false;
      log.info({ broker: broker.url, filter }, 'devices of the broker are served');
      onSubscribed();
    } catch (err) {
      if (isClosing || !client.connected) return;
      log.error({ err, filter }, 'the broker does not let the bridge subscribe');
      client.stream.destroy();
    }
  }

  function end(): void {
    isClosing = true;
    // An ended client takes a stream that closes late for a lost connection, and would be back.
    client.options.reconnectPeriod = 0;
  }

  return {
    connect: () => void client.connect(),
    /** Resolves with the first subscription. */
    subscribed,

    publish: createPublisher(client),

    /** Has everything that is not acknowledged delivered again. */
    restart(): void {
      if (!isClosing) client.stream.destroy();
    },

    async close(): Promise<void> {
      end();
      await client.endAsync(!client.connected);
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
