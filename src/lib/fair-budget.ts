/** A reservation that has memory, or waits for it. */
export type Reservation = {
  /** Resolves once the reservation has its memory; at once if there was enough. */
  readonly entered: Promise<void>;
  readonly isIn: boolean;
  /** Corrects the amount. The reservation keeps its memory even if the new amount exceeds the budget. */
  resize(bytes: number): void;
  /** Frees the memory, or stops waiting. */
  leave(): void;
};

type MemoryBudgetOptions = {
  /** The limit of all reservations together. */
  maxBytes: number;
  /** The share of the limit that one key may use. */
  share: number;
  /** Reservations that may wait: of all keys, and of one. */
  maxWaiting: number;
  maxWaitingOfKey: number;
};

/** `places` counts reservations that have memory, of any size, and those that wait. */
type Key = { places: number; bytes: number; waiting: Waiting[] };

/**
 * A memory limit shared by many. Reservations that do not fit wait. Keys (accounts, addresses) take turns, each in
 * order of arrival, and none may use more than its share. A reservation larger than a limit is admitted when it is
 * alone.
 */
export class MemoryBudget {
  readonly #options: MemoryBudgetOptions;
  readonly #keys = new Map<string, Key>();
  /** Keys whose first waiting reservation is within its share, and so waits for other keys' memory. */
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

  /** Whether a reservation within its share waits for memory that others use. */
  get isWanted(): boolean {
    return this.#ready.size > 0;
  }

  /** Null if too many wait already. The caller must `leave` the reservation. */
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
      // Does not skip the first one: small reservations would keep a large one waiting forever.
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

  /** Queues the key behind the others if its first reservation is within its share. */
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
