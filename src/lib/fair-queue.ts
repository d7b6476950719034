import type { MonotonicMs } from './clock-readings.ts';

/** More new ones do not go before the others at once: who comes under a new key each time is always new. */
const freshInARow = 4;

/**
 * Keys that take turns. One that is new goes before those that had theirs, once in a round (as FQ-CoDel has it,
 * RFC 8290 section 4.2): who asks for little hardly waits for who asks without end.
 */
class Rotation<V> {
  readonly #fresh = new Map<string, V>();
  /** First the one whose turn it is. Those with nothing left stay until then, so that they are not new again before. */
  readonly #others = new Map<string, V>();
  /** New ones that had their turn since one of the others had. */
  #freshSince = 0;

  get(key: string): V | undefined {
    return this.#others.get(key) ?? this.#fresh.get(key);
  }

  add(key: string, value: V): void {
    this.#fresh.set(key, value);
  }

  /** Whose turn it is, of those that `may`; whoever it is has had it then. Those that are empty are forgotten. */
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

  /** The one with most; of equal ones the one whose turn comes last. */
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

/** Whom something is queued for: the client's address, and who asks there (an account, a credential). */
export type Asker = { address: string; who: string };

type Line<T> = { waiting: number; ofEach: Rotation<T[]> };

const isOver = ({ waiting }: { waiting: number }) => waiting === 0;
const isEmpty = (things: readonly unknown[]) => things.length === 0;

/**
 * A queue served in turns of addresses, and within an address of who asks: however much one of them
 * has queued, another waits for one item of each.
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

  /** The next thing of an address that may have one, and that address; null when none may. */
  take(mayHave?: (address: string) => boolean): { address: string; thing: T } | null {
    const [address, line] = this.#lines.next(isOver, mayHave) ?? [];
    const [, things] = line?.ofEach.next(isEmpty) ?? [];
    if (address === undefined || !line || !things) return null;
    const thing = things.shift() as T;
    this.#count(line);
    return { address, thing };
  }

  /** The newest thing of who has most in line, at the address that has most. */
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

/** When somebody last did something: the newest one, and anybody else. In two times, however many there are. */
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

  /** When somebody other than this one last did; `-Infinity`: never. */
  than(who: number): number {
    return who === this.#newest ? this.#othersAtMs : this.#atMs;
  }
}
