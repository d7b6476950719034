import type { Delivery } from '../../src/contract/uplink.ts';
import type { Connection } from './connection.ts';
import type { Proceed, Received } from '../device/received.ts';

/** Hears what becomes of a message. */
export type FateListener = {
  stored(unacked: Unacked): void;
  failed(unacked: Unacked, error: unknown): void;
};

/** A message that waits for its commit, or for the acknowledgement of those before it. */
export class Unacked implements Received, Delivery {
  isStored = false;
  readonly connection: Connection;
  readonly qos: number;
  readonly messageId: number;
  readonly bytes: number;
  /** `Infinity` while its account has to wait. */
  sinceMs: number;
  readonly proceed: Proceed | null;
  readonly #listener: FateListener;

  constructor(listener: FateListener, connection: Connection, message: Received) {
    this.#listener = listener;
    this.connection = connection;
    this.qos = message.qos;
    this.messageId = message.messageId;
    this.bytes = message.bytes;
    this.sinceMs = message.sinceMs;
    this.proceed = message.proceed;
  }

  get isWithdrawn(): boolean {
    const { withdrawn } = this.connection;
    return withdrawn === 'all' || (withdrawn === 'resendable' && this.qos > 0);
  }

  stored(): void {
    this.#listener.stored(this);
  }

  failed(error: unknown): void {
    this.#listener.failed(this, error);
  }
}
