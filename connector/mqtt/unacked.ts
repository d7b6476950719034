import type { Delivery, Outcome, Uplink } from '../../src/contract/uplink.ts';
import { isRecognisedAgain } from '../device/parse-uplink.ts';
import type { AccountConnections, Connection, Device, UnackedPublish } from './connection.ts';

/**
 * An account may hold this many times the bytes that are still free: one alone up to two thirds of all,
 * two up to two fifths each. So some bytes stay free for the next account, however many there are
 * (dynamic thresholds: Choudhury and Hahne, 1998).
 */
const shareOfFree = 2;
/** After so many accounts that may not go on yet the search ends, until the next message is stored. */
const mostInVain = 8;

export type UnackedRoom = ReturnType<typeof createUnackedRoom>;

/** What messages that wait for their commit may take of the memory, all connections together. */
export function createUnackedRoom(maxBytes: number) {
  const waiting = new Set<AccountConnections>();
  let bytes = 0;

  const hasRoom = (account: AccountConnections | null) =>
    (account?.bytes ?? 0) < shareOfFree * (maxBytes - bytes);

  /** Between those that wait because of their account, and those under way. */
  function bringBack({ account }: Device, more: number): void {
    bytes += more;
    account.bytes += more;
    account.heldBytes -= more;
  }

  /** Accounts in turn, one connection each. */
  function resumeWaiting(): void {
    let inVain = 0;
    for (const account of waiting) {
      waiting.delete(account);
      const [first] = account.waiting;
      if (!first) continue;
      if (!hasRoom(account)) {
        waiting.add(account);
        inVain += 1;
        if (bytes >= maxBytes || inVain >= mostInVain) return;
        continue;
      }
      account.waiting.delete(first);
      if (account.waiting.size > 0) waiting.add(account);
      first.resume();
    }
  }

  return {
    /** Whether there is room for another message of the connection; where not, it is resumed when there is. */
    isFor(connection: Connection): boolean {
      const account = connection.device?.account ?? null;
      if (hasRoom(account)) return true;
      if (account) {
        account.waiting.add(connection);
        waiting.add(account);
      }
      return false;
    },

    hold(connection: Connection, more: number): void {
      connection.unackedBytes += more;
      bytes += more;
      if (connection.device) connection.device.account.bytes += more;
    },

    release(connection: Connection, less: number): void {
      connection.unackedBytes -= less;
      bytes -= less;
      if (connection.device) connection.device.account.bytes -= less;
      if (waiting.size > 0) resumeWaiting();
    },

    /** What waits because of its account is not under way: nobody else waits for it. */
    setAside(device: Device, less: number): void {
      bringBack(device, -less);
      if (waiting.size > 0) resumeWaiting();
    },

    bringBack,

    forget(connection: Connection): void {
      connection.device?.account.waiting.delete(connection);
    },

    bytes: () => bytes,
  };
}

/** Whoever acknowledges messages, in their order. */
type Told = {
  stored(unacked: Unacked): void;
  failed(unacked: Unacked, error: unknown): void;
};

/**
 * A message that waits for its commit, or for the acknowledgement of those before it. It takes its room until it is
 * stored, or fails.
 */
export class Unacked implements UnackedPublish, Delivery {
  isStored = false;
  /** What became of its payload; null while that is not parsed, and once it is stored. */
  uplink: Pick<Uplink, 'content'> | null = null;
  readonly connection: Connection;
  readonly qos: number;
  readonly messageId: number;
  readonly bytes: number;
  sinceMs: number;
  readonly #acknowledger: Told;
  readonly #room: Pick<UnackedRoom, 'release'>;

  constructor(
    acknowledger: Told,
    room: Pick<UnackedRoom, 'hold' | 'release'>,
    connection: Connection,
    message: Omit<UnackedPublish, 'isStored'>,
  ) {
    this.#acknowledger = acknowledger;
    this.#room = room;
    this.connection = connection;
    this.qos = message.qos;
    this.messageId = message.messageId;
    this.bytes = message.bytes;
    this.sinceMs = message.sinceMs;
    room.hold(connection, message.bytes);
  }

  /** Of one that is not parsed yet nobody knows whether a second copy would be recognised. */
  get isWithdrawn(): boolean {
    const { withdrawn } = this.connection;
    if (withdrawn !== 'resendable') return withdrawn === 'all';
    return this.qos > 0 && this.uplink !== null && !isRecognisedAgain(this.uplink.content);
  }

  stored(): void {
    this.isStored = true;
    this.uplink = null;
    this.#room.release(this.connection, this.bytes);
    this.#acknowledger.stored(this);
  }

  failed(error: unknown): void {
    this.#room.release(this.connection, this.bytes);
    this.#acknowledger.failed(this, error);
  }
}

/** One whose acknowledgement says what became of its items. */
export class CountedUnacked extends Unacked {
  outcome: Outcome | null = null;

  settled(outcome: Outcome): void {
    this.outcome = outcome;
  }
}
