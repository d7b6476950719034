/** Something that takes up room, or waits for it. */
export type Reservation = {
  /** Resolves once it is in; at once where there was room. */
  readonly entered: Promise<void>;
  readonly isIn: boolean;
  /** It turned out to take so much: it stays in, also where that is more than there is room for. */
  resize(bytes: number): void;
  /** Gives its room back, or waits no longer. */
  leave(): void;
};

type MemoryBudgetOptions = {
  /** What all places may take together. */
  maxBytes: number;
  /** What those of one key may take, as a part of it. */
  share: number;
  /** Places that wait: of all keys, and of one. */
  maxWaiting: number;
  maxWaitingOfKey: number;
};

/** `places`: those that are in, whatever they take, and those that wait. */
type Key = { places: number; bytes: number; waiting: Waiting[] };

/**
 * Bytes that many share. What does not fit waits: keys (accounts, addresses) take turns, each in its
 * order, and none may take more than its share. One that is larger than a bound is let in alone.
 */
export class MemoryBudget {
  readonly #options: MemoryBudgetOptions;
  readonly #keys = new Map<string, Key>();
  /** Keys of which the first that waits is within its share: it waits for the others. */
  readonly #ready = new Set<string>();
  #bytes = 0;
  #waiting = 0;

  constructor(options: MemoryBudgetOptions) {
    this.#options = options;
  }

  get maxBytes(): number {
    return this.#options.maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Whether somebody who is within its share waits for what others have. */
  get isWanted(): boolean {
    return this.#ready.size > 0;
  }

  /** Null where too many wait already. Whoever gets a place has to leave it. */
  enter(name: string, bytes: number): Reservation | null {
    const key = this.#keys.get(name) ?? { places: 0, bytes: 0, waiting: [] };
    const isNext = key.waiting.length === 0 && this.#ready.size === 0;
    if (isNext && this.#isWithinShare(key, bytes) && this.#hasRoom(bytes)) {
      this.#keys.set(name, key);
      const place = this.#placeOf(name, key, bytes);
      this.#move(key, bytes);
      return place;
    }
    const { maxWaiting, maxWaitingOfKey } = this.#options;
    if (this.#waiting >= maxWaiting || key.waiting.length >= maxWaitingOfKey) return null;
    this.#keys.set(name, key);
    return this.#wait(name, key, bytes);
  }

  #wait(name: string, key: Key, bytes: number): Reservation {
    const place = this.#placeOf(name, key, bytes);
    place.wait();
    key.waiting.push(place);
    this.#waiting += 1;
    this.#look(name, key);
    return place;
  }

  #placeOf(name: string, key: Key, bytes: number): Waiting {
    key.places += 1;
    return new Waiting(bytes, {
      resized: (more) => this.#resized(name, key, more),
      left: (place) => this.#left(name, key, place),
    });
  }

  #resized(name: string, key: Key, more: number): void {
    this.#move(key, more);
    if (more < 0) this.#freed(name, key);
  }

  #left(name: string, key: Key, place: Waiting): void {
    key.places -= 1;
    if (place.isIn) this.#move(key, -place.bytes);
    else {
      key.waiting.splice(key.waiting.indexOf(place), 1);
      this.#waiting -= 1;
      this.#ready.delete(name);
    }
    this.#freed(name, key);
  }

  #freed(name: string, key: Key): void {
    if (key.places === 0) this.#keys.delete(name);
    this.#look(name, key);
    for (const next of this.#ready) {
      const first = this.#keys.get(next)?.waiting[0];
      // Not past the first one: small ones would keep a large one out without end.
      if (!first || !this.#hasRoom(first.bytes)) return;
      this.#letIn(next);
    }
  }

  #letIn(name: string): void {
    const key = this.#keys.get(name);
    const first = key?.waiting.shift();
    this.#ready.delete(name);
    if (!key || !first) return;
    this.#waiting -= 1;
    this.#move(key, first.bytes);
    first.letIn();
    this.#look(name, key);
  }

  /** Has the key take its turn, behind the others, where its first one is within its share. */
  #look(name: string, key: Key): void {
    const [first] = key.waiting;
    if (first && this.#isWithinShare(key, first.bytes)) this.#ready.add(name);
  }

  #move(key: Key, bytes: number): void {
    key.bytes += bytes;
    this.#bytes += bytes;
  }

  #isWithinShare(key: Key, bytes: number): boolean {
    return key.bytes === 0 || key.bytes + bytes <= this.#options.maxBytes * this.#options.share;
  }

  #hasRoom(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#options.maxBytes;
  }
}

type PlaceListener = { resized: (more: number) => void; left: (place: Waiting) => void };

const inAlready = Promise.resolve();

class Waiting implements Reservation {
  bytes: number;
  isIn = true;
  entered: Promise<void> = inAlready;
  readonly #told: PlaceListener;
  #resolve: () => void = () => {};
  #hasLeft = false;

  constructor(bytes: number, told: PlaceListener) {
    this.bytes = bytes;
    this.#told = told;
  }

  wait(): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.isIn = false;
    this.entered = promise;
    this.#resolve = resolve;
  }

  letIn(): void {
    this.isIn = true;
    this.#resolve();
  }

  resize(bytes: number): void {
    if (!this.isIn || this.#hasLeft) return;
    const more = bytes - this.bytes;
    this.bytes = bytes;
    this.#told.resized(more);
  }

  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#told.left(this);
  }
}
