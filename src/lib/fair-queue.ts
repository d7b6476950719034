import type { MonotonicMs } from './clock-readings.ts';

/** New keys served in a row before an old one: a client that uses a new key each time would always be new. */
const freshInARow = 4;

/**
 * Serves keys in rounds. A new key goes ahead of those already served, once per round (as in FQ-CoDel, RFC 8290 section
 * 4.2), so a client that asks for little hardly waits for one that never stops.
 */
class Rotation<V> {
  readonly #fresh = new Map<string, V>();
  /** The next key first. Empty keys stay until it is their turn, so that they do not become new again before. */
  readonly #others = new Map<string, V>();
  /** New keys served since an old one was. */
  #freshSince = 0;

  get(key: string): V | undefined {
    return this.#others.get(key) ?? this.#fresh.get(key);
  }

  add(key: string, value: V): void {
    this.#fresh.set(key, value);
  }

  /** Returns the next key for which `may` holds, and counts it as served. Removes empty keys on the way. */
  next(
    isEmpty: (value: V) => boolean,
    may: (key: string) => boolean = anyone,
  ): [string, V] | undefined {
    const [fresh, others] = [this.#fresh, this.#others];
    for (const keys of this.#freshSince < freshInARow ? [fresh, others] : [others, fresh])
      for (const entry of keys) {
        const [key, value] = entry;
        if (isEmpty(value)) keys.delete(key);
        else if (may(key)) {
          this.#freshSince = keys === fresh ? this.#freshSince + 1 : 0;
          keys.delete(key);
          others.set(key, value);
          return entry;
        }
      }
    return undefined;
  }

  /** The value with the largest size; of equal ones, the one whose turn comes last. */
  most(sizeOf: (value: V) => number): V | undefined {
    let found: V | undefined;
    for (const keys of [this.#fresh, this.#others])
      for (const value of keys.values())
        if (found === undefined || sizeOf(value) > sizeOf(found)) found = value;
    return found;
  }

  clear(): void {
    this.#fresh.clear();
    this.#others.clear();
    this.#freshSince = 0;
  }
}

const anyone = () => true;

/** Who queues something: the client's address, and the account or credential there. */
export type Asker = { address: string; who: string };

type Line<T> = { waiting: number; ofEach: Rotation<T[]> };

const isOver = ({ waiting }: { waiting: number }) => waiting === 0;
const isEmpty = (things: readonly unknown[]) => things.length === 0;

/**
 * A queue that serves addresses in turn, and at each address its clients in turn. However much one of them has queued,
 * another waits for only one item of each.
 */
export class FairQueue<T> {
  #waiting = 0;
  readonly #lines = new Rotation<Line<T>>();

  get waiting(): number {
    return this.#waiting;
  }

  add({ address, who }: Asker, thing: T): void {
    let line = this.#lines.get(address);
    if (!line) {
      line = { waiting: 0, ofEach: new Rotation() };
      this.#lines.add(address, line);
    }
    const things = line.ofEach.get(who);
    if (things) things.push(thing);
    else line.ofEach.add(who, [thing]);
    line.waiting += 1;
    this.#waiting += 1;
  }

  /** The next item of an address for which `mayHave` holds, and that address; null if there is none. */
  take(mayHave?: (address: string) => boolean): { address: string; thing: T } | null {
    const [address, line] = this.#lines.next(isOver, mayHave) ?? [];
    const [, things] = line?.ofEach.next(isEmpty) ?? [];
    if (address === undefined || !line || !things) return null;
    const thing = things.shift() as T;
    this.#count(line);
    return { address, thing };
  }

  /** Removes the newest item of the longest queue, at the address with the most items. */
  takeFromLongest(): T {
    const line = this.#lines.most(({ waiting }) => waiting);
    const thing = line?.ofEach.most(({ length }) => length)?.pop();
    if (!line || thing === undefined) throw new Error('Nothing waits.');
    this.#count(line);
    return thing;
  }

  #count(line: Line<T>): void {
    line.waiting -= 1;
    this.#waiting -= 1;
    if (this.#waiting === 0) this.#lines.clear();
  }
}

/** When somebody last did something, except a given one. Two times are enough, however many there are. */
export class LastByOthers {
  #newest: number | null = null;
  #atMs = -Infinity;
  #othersAtMs = -Infinity;

  note(who: number, monotonicMs: MonotonicMs): void {
    if (who !== this.#newest) {
      this.#othersAtMs = this.#atMs;
      this.#newest = who;
    }
    this.#atMs = monotonicMs;
  }

  /** When somebody other than `who` last did it; `-Infinity`: never. */
  than(who: number): number {
    return who === this.#newest ? this.#othersAtMs : this.#atMs;
  }
}
