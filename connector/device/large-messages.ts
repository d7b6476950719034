/** A large message that is being read, or waits until it may be. */
export type LargePlace = {
  readonly isIn: boolean;
  /** Returns its reservation, or stops waiting. */
  leave(): void;
};

type Account = { id: number; bytes: number; waiting: Set<Place> };
type Place = { isIn: boolean; readonly bytes: number; readonly onIn: () => void };

type LargeMessageBudget = {
  /** `onIn` is called if the message had to wait and may be read now. */
  enter(accountId: number, bytes: number, onIn: () => void): LargePlace;
  bytes(): number;
  /** How many messages wait for room. */
  waiting(): number;
};

/**
 * What an account has and asks for together may be at most this many times the bytes still free (as in
 * `mqtt/acknowledge.ts`) of three quarters of the budget. An account alone gets about half. The last quarter is for
 * accounts that hold nothing yet.
 */
const shareOfFree = 2;
const partForSeveral = 3 / 4;

/**
 * The memory budget for large messages. A message reserves all its bytes once its length is known, before they are
 * read, so that what has begun can finish. What has no room waits unread: accounts in turn, each in the order in which
 * its messages began.
 */
export function createLargeMessageBudget(maxBytes: number): LargeMessageBudget {
  const accounts = new Map<number, Account>();
  /** Accounts with waiting messages; the next in turn comes first. */
  const waitingAccounts = new Set<Account>();
  let bytes = 0;
  let waiting = 0;
  let isLooking = false;
  let isToLook = false;

  function fits(account: Account, more: number): boolean {
    if (account.bytes === 0) return bytes === 0 || bytes + more <= maxBytes;
    return account.bytes + more <= shareOfFree * (maxBytes * partForSeveral - bytes);
  }

  function move(account: Account, more: number): void {
    account.bytes += more;
    bytes += more;
    if (account.bytes === 0 && account.waiting.size === 0) accounts.delete(account.id);
  }

  /** Admits one message of each account in turn, as long as there is room for any. */
  function letIn(): void {
    for (const account of waitingAccounts) {
      const [first] = account.waiting;
      if (!first || !fits(account, first.bytes)) continue;
      waitingAccounts.delete(account);
      account.waiting.delete(first);
      waiting -= 1;
      // Moves to the end of the set, so this loop comes back to it.
      if (account.waiting.size > 0) waitingAccounts.add(account);
      first.isIn = true;
      move(account, first.bytes);
      first.onIn();
    }
  }

  function leave(account: Account, place: Place): void {
    const isWaiting = account.waiting.delete(place);
    // It left before.
    if (!isWaiting && !place.isIn) return;
    if (isWaiting) waiting -= 1;
    if (account.waiting.size === 0) waitingAccounts.delete(account);
    move(account, place.isIn ? -place.bytes : 0);
    place.isIn = false;
    // A message that is admitted may leave at once, within this call. Then the call already under way looks again.
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
      const isIn = account.waiting.size === 0 && fits(account, size);
      const place: Place = { isIn, bytes: size, onIn };
      if (isIn) move(account, size);
      else {
        account.waiting.add(place);
        waitingAccounts.add(account);
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
