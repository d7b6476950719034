import type { Delivery } from '../src/core/uplink.ts';
import type { Acknowledger } from './acknowledge.ts';
import type { Connection } from './connection.ts';

/** Tells aedes that it may go on with a packet. */
export type Proceed = (error?: Error | null) => void;

export type UnackedMessage = {
  /** 0: nobody will send it again. */
  qos: number;
  messageId: number;
  /** About what it takes of the memory until it is stored. */
  bytes: number;
  /** When it arrived. */
  sinceMs: number;
  /** Null where aedes does not know of the message. */
  proceed: Proceed | null;
};

/** A message that waits for its commit, or for the acknowledgement of those before it. */
export class Unacked implements Delivery {
  isStored = false;
  readonly connection: Connection;
  readonly qos: number;
  readonly messageId: number;
  readonly bytes: number;
  readonly sinceMs: number;
  readonly proceed: Proceed | null;
  readonly #acknowledger: Acknowledger;

  constructor(acknowledger: Acknowledger, connection: Connection, message: UnackedMessage) {
    this.#acknowledger = acknowledger;
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
    this.#acknowledger.stored(this);
  }

  failed(error: unknown): void {
    this.#acknowledger.failed(this, error);
  }
}
