/** Whom something is queued for: the client's address, and the account within it. */
export type LoginTurn = { address: string; account: string };

type Line<T> = { waiting: number; accounts: Map<string, T[]> };

/**
 * A queue served round robin by address, and within an address by account: however much one of them
 * has queued, another waits for one item of each.
 */
export class LoginTurns<T> {
  #waiting = 0;
  /** First the address whose turn it is; whoever had it goes to the end. */
  readonly #lines = new Map<string, Line<T>>();

  get waiting(): number {
    return this.#waiting;
  }

  add({ address, account }: LoginTurn, thing: T): void {
    const line: Line<T> = this.#lines.get(address) ?? { waiting: 0, accounts: new Map() };
    const things = line.accounts.get(account) ?? [];
    things.push(thing);
    line.accounts.set(account, things);
    line.waiting += 1;
    this.#lines.set(address, line);
    this.#waiting += 1;
  }

  /** The next thing of the first address that may have one, and that address; null when none may. */
  take(mayHave: (address: string) => boolean): { address: string; thing: T } | null {
    for (const [address, line] of this.#lines) {
      if (!mayHave(address)) continue;
      const [account, things] = first(line.accounts);
      const thing = things.shift() as T;
      toEnd(line.accounts, account, things, things.length > 0);
      this.#count(line);
      toEnd(this.#lines, address, line, line.waiting > 0);
      return { address, thing };
    }
    return null;
  }

  /** The newest thing of the account that has most in line, at the address that has most. */
  takeFromLongest(): T {
    const [address, line] = longest(this.#lines, ({ waiting }) => waiting);
    const [account, things] = longest(line.accounts, ({ length }) => length);
    const thing = things.pop() as T;
    if (things.length === 0) line.accounts.delete(account);
    this.#count(line);
    if (line.waiting === 0) this.#lines.delete(address);
    return thing;
  }

  #count(line: Line<T>): void {
    line.waiting -= 1;
    this.#waiting -= 1;
  }
}

function toEnd<V>(map: Map<string, V>, key: string, value: V, isLeft: boolean): void {
  map.delete(key);
  if (isLeft) map.set(key, value);
}

function first<K, V>(map: Map<K, V>): [K, V] {
  const next = map.entries().next();
  if (next.done) throw new Error('Nothing waits.');
  return next.value;
}

function longest<K, V>(map: Map<K, V>, lengthOf: (value: V) => number): [K, V] {
  let found = first(map);
  for (const entry of map) if (lengthOf(entry[1]) > lengthOf(found[1])) found = entry;
  return found;
}
