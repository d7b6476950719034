import { Rotation } from './fair-queue.ts';

/** Whom something is queued for: the client's address, and who asks there (an account, a credential). */
export type Asker = { address: string; who: string };

type Line<T> = { waiting: number; ofEach: Rotation<T[]> };

const isOver = ({ waiting }: { waiting: number }) => waiting === 0;
const isEmpty = (things: readonly unknown[]) => things.length === 0;

/**
 * A queue served in turns of addresses, and within an address of who asks: however much one of them
 * has queued, another waits for one item of each.
 */
export class FairTurns<T> {
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
