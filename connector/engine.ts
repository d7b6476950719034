import { Aedes, type AedesOptions, type PublishPacket } from 'aedes';
import { findConnection } from './connection.ts';

/**
 * aedes as a speaker of the protocol only. Devices never hear each other and what is sent to a device
 * is addressed to it, so there is nothing to route: no topic matching, no `$SYS/` messages, no device
 * that waits for a slow one.
 */
export class Engine extends Aedes {
  constructor(options: AedesOptions) {
    super({ ...options, mq: silentEmitter, persistence });
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

const silentEmitter = {
  on() {},
  close: (done: () => void) => setImmediate(done),
};

const nothing = Promise.resolve();
const acknowledged = (_client: unknown, packet: { messageId?: number }) => Promise.resolve(packet);

/**
 * Keeps nothing: sessions end with their connection, what is pushed comes from the database, nothing
 * is retained and a will lives as long as its connection. What aedes asks of it, it gets.
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
  // Known to have arrived: aedes answers PUBREC and does not publish.
  incomingGetPacket: acknowledged,
  incomingDelPacket(client: Parameters<typeof findConnection>[0], packet: { messageId: number }) {
    findConnection(client)?.unreleased?.delete(packet.messageId);
    return nothing;
  },
};
