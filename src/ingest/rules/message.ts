import type { Rejection } from '../../contract/rejection.ts';
import type { Delivery, Outcome, Uplink, UplinkContent } from '../../contract/uplink.ts';

/** A message on its way to the database, and whom to tell. */
export class Message {
  /** Names the message among rejections; made when it is needed, and kept, so that a retry adds none. */
  id: string | undefined = undefined;
  /** How many of its rejections are committed one by one. */
  rejectionsStored = 0;
  /** Whether a committed rejection has its whole payload. */
  isPayloadStored = false;
  /** How many of its sense events are committed, or being committed. */
  recorded = 0;
  /** How many of its units are not stored yet. */
  open = 1;
  /** Of the units that are committed; null: nobody asks. */
  outcome: Outcome | null;
  readonly uplink: Uplink;
  readonly delivery: Delivery;
  readonly newUuid: () => string;

  constructor(uplink: Uplink, delivery: Delivery, newUuid: () => string) {
    this.uplink = uplink;
    this.delivery = delivery;
    this.outcome = delivery.settled ? { stored: 0, repeated: 0, rejected: [] } : null;
    this.newUuid = newUuid;
  }

  /** One of its units is committed; with the last one the message is acknowledged. */
  unitStored(): void {
    this.open -= 1;
    if (this.open !== 0) return;
    if (this.outcome) this.delivery.settled?.(this.outcome);
    this.delivery.stored();
  }

  /** One of its units will not be stored, and so the message is not. Told once. */
  fail(error: unknown): void {
    if (this.open <= 0) return;
    // What is left of it does not count any more.
    this.open = -Infinity;
    this.delivery.failed(error);
  }
}

/** What a unit brings: what a device sent, or the time that came to it. */
export type UnitContent = UplinkContent | { kind: 'tick' };

/** The part of a message that is stored or fails together: all of it, until a failed batch is split. */
export type Unit = {
  message: Message;
  content: UnitContent;
  /** Items that it brings into a batch: `sizeOf` its content. */
  size: number;
  rejections: Rejection[];
  /** The database refused it: its rejection is all that is kept of it. */
  isRefused?: true;
};

export function newUnit(message: Message, content: UnitContent, rejections: Rejection[]): Unit {
  return { message, content, size: sizeOf(content), rejections };
}

/** How many items a unit of this content brings into a batch. */
export function sizeOf(content: UnitContent): number {
  return 'items' in content ? Math.max(1, content.items.length) : 1;
}

/** A tick as what a message is made of: it has no topic and no payload. */
export function uplinkOfTick(arrivedTs: number): Uplink {
  return { topic: '', excerpt: '', arrivedTs, content: { kind: 'none' }, rejections: [] };
}
