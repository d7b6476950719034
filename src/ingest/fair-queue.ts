/** First in, first out; elements can leave from the middle at the same cost. */
type LinkedQueue<T> = { first: T | null; last: T | null };

type Account<T> = LinkedQueue<T> & {
  readonly id: number;
  /** What it may still spend; negative: what it owes. */
  deficit: number;
  /** It is in the ring: it has waiting elements, or had when its turn last ended. */
  isInRing: boolean;
  /** The round in which it left the ring, or in which its debt was last updated. */
  round: number;
  next: Account<T> | null;
};

const leastRemembered = 1_000;

export function createAccountQueue<T extends Queued<T>>(
  options: AccountQueueOptions,
): AccountQueue<T> {
  const { quantum, maxDebt, maxDebtors = 10_000 } = options;
  const accounts = new Map<number, Account<T>>();
  /** The ring, from the account whose turn it is to the one that waits longest. */
  let head: Account<T> | null = null;
  let tail: Account<T> | null = null;
  /** When its turn ends, every account has had one. */
  let endOfRound: Account<T> | null = null;
  let round = 0;
  /** How many accounts have waiting elements. */
  let waiting = 0;
  let forgetAt = leastRemembered;

  function accountOf(id: number): Account<T> {
    const known = accounts.get(id);
    if (known) return known;
    if (accounts.size >= forgetAt) forgetPaid();
    const account: Account<T> = {
      first: null,
      last: null,
      id,
      deficit: 0,
      isInRing: false,
      round,
      next: null,
    };
    accounts.set(id, account);
    return account;
  }

  /** An account's debt goes down by a turn each round, even while it has nothing waiting. */
  function payOff(account: Account<T>): void {
    account.deficit = Math.min(0, account.deficit + (round - account.round) * quantum);
    account.round = round;
  }

  /** Forgets accounts that owe nothing any more, and the oldest of too many debtors. */
  function forgetPaid(): void {
    let debtors = 0;
    for (const account of accounts.values()) {
      if (account.isInRing) continue;
      payOff(account);
      if (account.deficit === 0) accounts.delete(account.id);
      else debtors += 1;
    }
    for (const account of accounts.values()) {
      if (debtors <= maxDebtors / 2) break;
      if (account.isInRing) continue;
      accounts.delete(account.id);
      debtors -= 1;
    }
    forgetAt = Math.max(leastRemembered, accounts.size + maxDebtors / 2);
  }

  function enter(account: Account<T>): void {
    payOff(account);
    account.deficit += quantum;
    account.isInRing = true;
    pushBack(account);
  }

  function pushBack(account: Account<T>): void {
    account.next = null;
    if (tail) tail.next = account;
    else head = endOfRound = account;
    tail = account;
  }

  function endTurn(account: Account<T>): void {
    head = account.next;
    if (!head) tail = null;
    const isRoundOver = account === endOfRound;
    if (isRoundOver) {
      round += 1;
      endOfRound = tail;
    }
    if (account.first) {
      account.deficit += quantum;
      pushBack(account);
      if (isRoundOver) endOfRound = account;
      return;
    }
    account.isInRing = false;
    account.round = round;
    account.next = null;
    // Unspent credit lapses.
    if (account.deficit >= 0) accounts.delete(account.id);
  }

  function takeOut(account: Account<T>, element: T): void {
    unlink(account, element);
    turns.size -= 1;
    if (!account.first) waiting -= 1;
  }

  const turns: { -readonly [K in keyof AccountQueue<T>]: AccountQueue<T>[K] } = {
    size: 0,
    add(element) {
      const account = accountOf(element.accountId);
      if (!account.first) waiting += 1;
      enqueue(account, element);
      turns.size += 1;
      if (!account.isInRing) enter(account);
    },
    remove(element) {
      const account = accounts.get(element.accountId);
      if (account) takeOut(account, element);
    },
    next() {
      while (head) {
        const { first } = head;
        if (first && head.deficit > 0) {
          takeOut(head, first);
          return first;
        }
        endTurn(head);
      }
      return null;
    },
    remaining: () => (head?.next ? Math.max(0, head.deficit) : Infinity),
    charge(accountId, cost) {
      const known = accounts.get(accountId);
      if (!known && cost <= 0) return;
      const account = known ?? accountOf(accountId);
      if (!account.isInRing) payOff(account);
      account.deficit = Math.max(-maxDebt, Math.min(quantum, account.deficit - cost));
      if (!account.isInRing && account.deficit >= 0) accounts.delete(accountId);
    },
    othersWait: (accountId) => waiting > (accounts.get(accountId)?.first ? 1 : 0),
    countAccounts: () => accounts.size,
  };
  return turns;
}

/** Appends an element that is in no queue. */
function enqueue<T extends Queued<T>>(queue: LinkedQueue<T>, element: T): void {
  element.previous = queue.last;
  if (queue.last) queue.last.next = element;
  else queue.first = element;
  queue.last = element;
}

/** Removes an element, wherever it is. */
function unlink<T extends Queued<T>>(queue: LinkedQueue<T>, element: T): void {
  const { previous, next } = element;
  if (previous) previous.next = next;
  else queue.first = next;
  if (next) next.previous = previous;
  else queue.last = previous;
  element.previous = element.next = null;
}

/** An element of an account's queue, which is also a link of it. */
type Queued<T> = { readonly accountId: number; previous: T | null; next: T | null };

type AccountQueueOptions = {
  /** What an account may spend in a turn, as `Budget` counts. */
  quantum: number;
  /** The most that an account can owe; more is forgiven. */
  maxDebt: number;
  /** How many accounts may owe something without anything waiting. Further debts are forgotten. */
  maxDebtors?: number;
};

/**
 * Deficit round robin over accounts (Shreedhar and Varghese, 1995). The elements of an account keep their order. Costs
 * need not be known when an element is taken: they are charged afterwards, and an account that overspent misses turns
 * until that is paid off. An account that waits alone is never delayed.
 */
export type AccountQueue<T> = {
  /** Appends to what its account has waiting. */
  add(element: T): void;
  /** Removes an element, wherever it is. */
  remove(element: T): void;
  /** Takes the next element in turn; null if none waits. Charge its cost before taking another. */
  next(): T | null;
  /** What the account of the last taken element may still spend in this turn; `Infinity` if no other account waits. */
  remaining(): number;
  /** A negative cost is given back. */
  charge(accountId: number, cost: number): void;
  /** Whether another account has waiting elements. */
  othersWait(accountId: number): boolean;
  /** How many elements wait. */
  readonly size: number;
  /** How many accounts are known: those that wait, and those that owe. */
  countAccounts(): number;
};
