/** A large message that is coming in, or waits until it may. */
export type LargePlace = {
  readonly isIn: boolean;
  /** Gives its room back, or waits no longer. */
  leave(): void;
};

type Account = { id: number; bytes: number; waiting: Set<Place> };
type Place = { isIn: boolean; readonly bytes: number; readonly onIn: () => void };

export type LargeRoom = {
  /** `onIn` is called where the message had to wait and may come in now. */
  enter(accountId: number, bytes: number, onIn: () => void): LargePlace;
  bytes(): number;
  /** Messages that wait for room. */
  waiting(): number;
};

/**
 * With what it has and what it asks for, an account may take this many times the bytes that are still free
 * (`unacked.ts`), of three quarters of all: one alone about half. The last quarter is for accounts that have
 * nothing in the room yet.
 */
const shareOfFree = 2;
const partForSeveral = 3 / 4;

/**
 * Room for messages that are larger than others may be, from where their length is known until they are whole.
 * All of a message's bytes are reserved before they are read, so that what was begun can end. What has no room
 * waits unread: accounts in turn, each in the order in which its messages began.
 */
export function createLargeRoom(maxBytes: number): LargeRoom {
  const accounts = new Map<number, Account>();
  /** Accounts with messages that wait, the one whose turn is next in front. */
  const turns = new Set<Account>();
  let bytes = 0;
  let waiting = 0;
  let isLooking = false;
  let isToLook = false;

  function hasRoom(account: Account, more: number): boolean {
    if (account.bytes === 0) return bytes === 0 || bytes + more <= maxBytes;
    return account.bytes + more <= shareOfFree * (maxBytes * partForSeveral - bytes);
  }

  function move(account: Account, more: number): void {
    account.bytes += more;
    bytes += more;
    if (account.bytes === 0 && account.waiting.size === 0) accounts.delete(account.id);
  }

  /** One of each account in turn, as long as there is room for any. */
  function letIn(): void {
    for (const account of turns) {
      const [first] = account.waiting;
      if (!first || !hasRoom(account, first.bytes)) continue;
      turns.delete(account);
      account.waiting.delete(first);
      waiting -= 1;
      // Behind the others: the loop comes back to it.
      if (account.waiting.size > 0) turns.add(account);
      first.isIn = true;
      move(account, first.bytes);
      first.onIn();
    }
  }

  function leave(account: Account, place: Place): void {
    const isWaiting = account.waiting.delete(place);
    // It has left before.
    if (!isWaiting && !place.isIn) return;
    if (isWaiting) waiting -= 1;
    if (account.waiting.size === 0) turns.delete(account);
    move(account, place.isIn ? -place.bytes : 0);
    place.isIn = false;
    // What is let in may leave at once, within this call: the call that is under way looks again.
    isToLook = true;
    if (isLooking) return;
    isLooking = true;
    while (isToLook) {
      isToLook = false;
      letIn();
    }
    isLooking = false;
  }

  return {
    enter(accountId, size, onIn) {
      const account = accounts.get(accountId) ?? { id: accountId, bytes: 0, waiting: new Set() };
      accounts.set(accountId, account);
      const isIn = account.waiting.size === 0 && hasRoom(account, size);
      const place: Place = { isIn, bytes: size, onIn };
      if (isIn) move(account, size);
      else {
        account.waiting.add(place);
        turns.add(account);
        waiting += 1;
      }
      return {
        get isIn() {
          return place.isIn;
        },
        leave: () => leave(account, place),
      };
    },
    bytes: () => bytes,
    waiting: () => waiting,
  };
}
