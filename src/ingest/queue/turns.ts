/** What waits in an account's queue, and is a link of it while it does. */
export type Queued<T> = { readonly accountId: number; previous: T | null; next: T | null };

export type TurnOptions = {
  /** What an account may spend when its turn comes, as `Budget` counts. */
  quantum: number;
  /** An account never owes more than this: what it takes beyond is forgiven. */
  maxDebt: number;
  /** Accounts that owe something and have nothing waiting; the debts of further ones are forgotten. */
  maxDebtors?: number;
};

/**
 * Deficit round robin over accounts (Shreedhar and Varghese, 1995); an account's own elements keep their
 * order. Costs need not be known before an element is taken: they are charged afterwards, and an account
 * that spent more than it had passes its turns until that is paid. An account that waits alone is never held
 * back.
 */
export type AccountTurns<T> = {
  /** Puts it behind what its account has waiting. */
  add(element: T): void;
  /** Takes it out of the middle. */
  remove(element: T): void;
  /** The next one whose turn it is; null where nothing waits. Its cost is to be charged before the next. */
  next(): T | null;
  /** What the account of the element taken last may still spend in this turn; `Infinity` while no other waits. */
  room(): number;
  /** Below zero it is given back. */
  charge(accountId: number, cost: number): void;
  /** Whether something of another account waits. */
  othersWait(accountId: number): boolean;
  /** How many elements wait. */
  readonly size: number;
  /** How many accounts are known: those that wait, and those that owe. */
  countAccounts(): number;
};
