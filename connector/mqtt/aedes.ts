import type { EventEmitter } from 'node:events';
import {
  Aedes,
  type AedesOptions,
  type Client,
  type PublishPacket,
  type SubscribePacket,
} from 'aedes';
import { findConnection } from './connection.ts';
import type { ConnectionEnding, ConnectionRefusal } from '../ports.ts';

/**
 * aedes, used only to speak the protocol. Devices never hear each other, and each message to a device is addressed to
 * it, so there is nothing to route: no topic matching, no `$SYS/` messages, no device that waits for a slow one.
 */
export class DeviceAedes extends Aedes {
  constructor(options: AedesOptions) {
    super({ ...options, ...boundElsewhere, mq: silentEmitter, persistence });
    const { handle } = this;
    this.handle = (stream, request) => {
      const client = handle(stream, request);
      parserOf(client).prependListener('packet', (packet: Parsed) => {
        keepFilters(packet);
        if (packet.cmd === 'disconnect') noteLeaving(client);
      });
      // A plain object inherits members that are not subscriptions.
      Object.assign(client, { subscriptions: Object.create(null) });
      return client;
    };
    this.on('connackSent', (_packet, client) => endAnswer(client));
  }

  override publish(_packet: PublishPacket, clientOrDone: unknown, done?: () => void): void {
    if (typeof clientOrDone === 'function') clientOrDone();
    else done?.();
  }

  override subscribe(_topic: string, _deliver: unknown, done: () => void): void {
    done();
  }

  override unsubscribe(_topic: string, _deliver: unknown, done?: () => void): void {
    done?.();
  }
}

/** Why aedes closed a connection: before it was let in, or afterwards. */
type Failure = { refusal: ConnectionRefusal | null; ending: ConnectionEnding | null };

/** aedes gives its errors no code, so this goes by their text, and by `errorCode` for a CONNACK. */
export function readFailure(error: Error): Failure {
  if (error.message === 'drain timeout') return { refusal: null, ending: 'unread' };
  const ending = 'code' in error ? null : 'malformed';
  if (error.message === 'connect did not arrive in time') return { refusal: 'timeout', ending };
  const isVersion = 'errorCode' in error && error.errorCode === 1;
  return { refusal: isVersion ? 'protocol-version' : null, ending };
}

type Parsed = SubscribePacket | { cmd: 'disconnect' } | { cmd: 'other' };

/** The client sent DISCONNECT, so it leaves on purpose. aedes closes the connection next. */
function noteLeaving(client: Client): void {
  const connection = findConnection(client);
  if (connection?.ending === null && connection.stage === 'ready') connection.hasLeft = true;
}

/** aedes has no hook for a whole SUBSCRIBE, so we listen where it receives packets itself. */
const parserOf = (client: Client) => (client as unknown as { _parser: EventEmitter })._parser;

/**
 * aedes removes all but the last of equal filters before it answers, and so returns too few codes. Each filter has to
 * be handled in order, with a return code of its own [MQTT-3.8.4-4] [MQTT-3.8.4-5], so a list with equal filters is
 * made read-only. So is a list with `__proto__`: aedes 2.0.0-beta.1 keeps filters by name in a plain object, and this
 * name ends the process. Other lists stay plain, because V8 keeps what an accessor refers to until the next full
 * collection.
 */
function keepFilters(packet: Parsed): void {
  if (packet.cmd !== 'subscribe') return;
  const { subscriptions } = packet;
  const topics = new Set(subscriptions.map(({ topic }) => topic));
  if (topics.size === subscriptions.length && !topics.has('__proto__')) return;
  Object.defineProperty(packet, 'subscriptions', { get: () => subscriptions, set() {} });
}

/** aedes 1 limits QoS 2 messages unless told not to; aedes 2 does not know the option. */
const boundElsewhere = { maxInflightInbound: 0 };

/**
 * Replaces the CONNACK of aedes for a client of MQTT 5: aedes 2 states four of the seven limits, and has no hook for
 * the others. Call this before telling aedes whether the client is let in: nothing else is written at that time.
 */
export function answerConnect({ conn }: Client, connack: Buffer): void {
  const { write } = conn;
  let isWritten = false;
  conn.write = () => {
    if (isWritten) return true;
    isWritten = true;
    return write.call(conn, connack);
  };
}

function endAnswer({ conn }: Client): void {
  if (Object.hasOwn(conn, 'write')) Reflect.deleteProperty(conn, 'write');
}

const silentEmitter = {
  on() {},
  close: (done: () => void) => setImmediate(done),
};

const nothing = Promise.resolve();
const acknowledged = (_client: unknown, packet: { messageId?: number }) => Promise.resolve(packet);

/**
 * A persistence that keeps nothing: sessions end with their connection, what is sent comes from the database, nothing
 * is retained, and a will lives as long as its connection. It has the methods that aedes calls.
 */
const persistence = {
  async setup() {},
  cleanSubscriptions: () => nothing,
  putWill: () => nothing,
  delWill: () => nothing,
  streamWill: () => [],
  outgoingStream: () => [],
  createRetainedStreamCombi: () => ({ pipe() {} }),
  outgoingClearMessageId: acknowledged,
  // The message is known, so aedes answers PUBREC and does not publish.
  incomingGetPacket: acknowledged,
  incomingDelPacket(client: Parameters<typeof findConnection>[0], packet: { messageId: number }) {
    findConnection(client)?.unreleased?.delete(packet.messageId);
    return nothing;
  },
};
