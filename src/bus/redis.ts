import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { downTopics, dueTopics } from '../contract/uplink.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';
import { closeRedis, firstOf, openRedis } from '../lib/redis.ts';
import {
  type Bus,
  type BusMessages,
  type Channel,
  createLocalBus,
  type LocalBusOptions,
} from './bus.ts';

type RedisBusOptions = LocalBusOptions & {
  url: string;
  monotonicClock: MonotonicClock;
  /** Name of the Redis channel, one per installation. */
  redisChannel?: string;
  /** How often each process checks its path through Redis. After three heartbeats without an echo it reconnects. */
  heartbeatMs?: number;
  /** The bus is degraded (connection lost, message not understood). For the log; it recovers by itself. */
  onError: (error: Error) => void;
  /** A lost connection is back. */
  onBack?: () => void;
};

/**
 * The bus over Redis publish/subscribe. This process receives its own messages immediately and without Redis; others
 * receive them while Redis is up. A process that may have missed something receives `resync`: this one after its
 * subscription was interrupted, the others after this process could not publish.
 */
export async function startRedisBus(options: RedisBusOptions): Promise<Bus> {
  const { url, monotonicClock, redisChannel = 'sensorium:bus' } = options;
  const { heartbeatMs = 3_000, onError, onBack } = options;
  const self = randomUUID();
  const local = createLocalBus(options);
  const publisher = openRedis({ url, onError });
  // The client would subscribe again by itself, but reports neither when nor whether it succeeded.
  const subscriber = openRedis({ url, onError, onBack, autoResubscribe: false });
  let othersMissedSomething = false;
  let subscribedBefore = false;
  let echoedMs = monotonicClock();

  const send = (channel: Channel | 'heartbeat', message: unknown): void => {
    publisher.publish(redisChannel, JSON.stringify({ from: self, channel, message })).then(
      () => {
        if (!othersMissedSomething) return;
        othersMissedSomething = false;
        send('resync', {});
      },
      () => (othersMissedSomething = true),
    );
  };

  subscriber.on('message', (_channel, text) => {
    const received = decodeBusMessage(text);
    if (!received) return onError(new Error('A bus message could not be read.'));
    if (received.from === self) echoedMs = monotonicClock();
    else if (received.message) local.publish(received.message.channel, received.message.message);
  });

  const subscribe = async (): Promise<void> => {
    await subscriber.subscribe(redisChannel);
    echoedMs = monotonicClock();
    if (subscribedBefore) local.publish('resync', {});
    subscribedBefore = true;
  };
  const firstSubscription = new Promise<void>((resolve) => {
    subscriber.on('ready', () => void subscribe().then(resolve, retry));
  });
  const retry = (error: Error): void => {
    onError(error);
    subscriber.disconnect(true);
  };

  const heartbeat = setInterval(() => {
    send('heartbeat', null);
    if (subscriber.status !== 'ready' || monotonicClock() - echoedMs < 3 * heartbeatMs) return;
    echoedMs = monotonicClock();
    retry(new Error('The bus echo is overdue; reconnecting.'));
  }, heartbeatMs);

  // Redis may be away at the start. The bus then begins when it comes back.
  await Promise.all([
    Promise.race([firstSubscription, firstOf(subscriber, ['close'])]),
    firstOf(publisher, ['ready', 'close']),
  ]);

  return {
    publish(channel, message) {
      local.publish(channel, message);
      send(channel, message);
    },
    subscribe: local.subscribe.bind(local),
    async close() {
      clearInterval(heartbeat);
      await local.close();
      await Promise.all([closeRedis(publisher), closeRedis(subscriber)]);
    },
  };
}

const id = z.int();

const number = z.tuple([z.string(), id, z.number()]);
const position = z.tuple([z.string(), id, z.number(), z.number()]);

const schemas = {
  device: z.object({
    deviceId: id,
    uuid: z.string(),
    push: z.enum(['profile', 'configuration']).optional(),
  }),
  due: z.object({ uuid: z.string(), topic: z.enum(dueTopics) }),
  command: z.object({ accountId: id, commandId: z.string() }),
  down: z.object({
    uuid: z.string(),
    message: z.object({
      topic: z.enum(downTopics),
      payload: z.unknown(),
      pId: z.string().optional(),
      keptId: id.optional(),
    }),
  }),
  access: z.object({ deviceId: id, uuid: z.string() }),
  session: z.object({ uuid: z.string(), clientId: z.string(), connection: z.string() }),
  removed: z.object({ accountId: id }),
  revoked: z.object({ accountId: id, sessionId: z.string().optional() }),
  events: z.object({ accountIds: z.array(id), deviceIds: z.array(id) }),
  labels: z.object({ accountId: id }),
  fleet: z.object({ accountId: id }),
  presence: z.object({
    accounts: z.array(
      z.object({
        accountId: id,
        devices: z
          .array(
            z.object({
              deviceId: id,
              uuid: z.string(),
              connected: z.boolean(),
              connectorId: id,
              seenTs: id,
            }),
          )
          .nullable(),
      }),
    ),
  }),
  measurements: z.object({
    accountId: id,
    devices: z.array(
      z.object({ deviceId: id, uuid: z.string(), values: z.array(z.union([number, position])) }),
    ),
  }),
  listeners: z.object({ process: z.string(), accountIds: z.array(id) }),
  'listeners-asked': z.object({}),
  ticket: z.object({ ticket: z.string(), opening: id }),
  resync: z.object({}),
} satisfies { [C in Channel]: z.ZodType<BusMessages[C]> };

/** `heartbeat` proves that the path through Redis works. */
const Envelope = z.object({
  from: z.string(),
  channel: z.enum(['heartbeat', ...(Object.keys(schemas) as Channel[])]),
  message: z.unknown(),
});

type ReceivedMessage = {
  from: string;
  message: { [C in Channel]: { channel: C; message: BusMessages[C] } }[Channel] | null;
};

/** Decodes another process's message; null if this version does not understand it. */
function decodeBusMessage(text: string): ReceivedMessage | null {
  const envelope = Envelope.safeParse(parseJson(text)).data;
  if (!envelope) return null;
  if (envelope.channel === 'heartbeat') return { from: envelope.from, message: null };
  const message = schemas[envelope.channel].safeParse(envelope.message);
  if (!message.success) return null;
  return {
    from: envelope.from,
    message: { channel: envelope.channel, message: message.data } as ReceivedMessage['message'],
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
