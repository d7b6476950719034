import { waitAtMost } from './wait.ts';

/** A reservation that has its amount, or waits for it. */
export type Reservation = {
  /** Resolves once the reservation has its amount; at once if there was enough. */
  readonly entered: Promise<void>;
  readonly isIn: boolean;
  /** Corrects the amount. The reservation keeps it even if the new amount exceeds the budget. */
  resize(amount: number): void;
  /** Frees the amount, or stops waiting. */
  leave(): void;
};

/** How long to wait for a place. */
type PlaceWait = {
  /** Absent: without a limit. */
  withinMs?: number | undefined;
  /** Whoever waits has gone. */
  signal?: AbortSignal | undefined;
  /** Creates what is thrown if no place became free in time. */
  refuse: () => Error;
};

type FairBudgetOptions = {
  /** The limit of all reservations together; `Infinity`: none. */
  most: number;
  /** The limit of one key; 0: it may not enter. */
  mostOfKey: (key: string) => number;
  /** Reservations that may wait: of all keys, and of one. Without a limit if absent. */
  maxWaiting?: number;
  maxWaitingOfKey?: number;
};

/** `places` counts reservations that are in, of any size, and those that wait. */
type Key = { places: number; amount: number; waiting: Waiting[] };

/**
 * A limit shared by many: of bytes, connections, or work at a time. Reservations that do not fit wait. Keys (accounts,
 * addresses) take turns, each in order of arrival, and none may use more than its share. A reservation larger than a
 * limit is admitted when it is alone.
 */
export class FairBudget {
  readonly #options: FairBudgetOptions;
  readonly #keys = new Map<string, Key>();
  /** Keys whose first waiting reservation is within its share, and so waits for what other keys use. */
  readonly #ready = new Set<string>();
  #used = 0;
  #waiting = 0;

  constructor(options: FairBudgetOptions) {
    this.#options = options;
  }

  get most(): number {
    return this.#options.most;
  }

  get used(): number {
    return this.#used;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Whether a reservation within its share waits for what others use. */
  get isWanted(): boolean {
    return this.#ready.size > 0;
  }

  /** Null if too many wait already. The caller must `leave` the reservation. */
  enter(name: string, amount: number): Reservation | null {
    const key = this.#keys.get(name) ?? { places: 0, amount: 0, waiting: [] };
    const isNext = key.waiting.length === 0 && this.#ready.size === 0;
    if (isNext && this.#isWithinShare(name, key, amount) && this.#fits(amount)) {
      this.#keys.set(name, key);
      const place = this.#placeOf(name, key, amount);
      this.#move(key, amount);
      return place;
    }
    const { maxWaiting = Infinity, maxWaitingOfKey = Infinity } = this.#options;
    if (this.#waiting >= maxWaiting || key.waiting.length >= maxWaitingOfKey) return null;
    this.#keys.set(name, key);
    return this.#wait(name, key, amount);
  }

  /** Waits for an amount of 1. Returns what frees it, which may be called twice. Throws what `refuse` creates. */
  async take(name: string, { withinMs, signal, refuse }: PlaceWait): Promise<() => void> {
    const place = signal?.aborted ? null : this.enter(name, 1);
    if (!place) throw refuse();
    const leave = place.leave.bind(place);
    if (place.isIn) return leave;
    const gone = Promise.withResolvers<void>();
    const onAbort = () => gone.resolve();
    signal?.addEventListener('abort', onAbort);
    const either = Promise.race([place.entered, gone.promise]);
    await (withinMs === undefined ? either : waitAtMost(either, withinMs));
    signal?.removeEventListener('abort', onAbort);
    if (place.isIn && !signal?.aborted) return leave;
    leave();
    throw refuse();
  }

  /** Runs work that takes an amount of 1 once it is its turn, however long that takes. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const leave = await this.take(name, { refuse: () => new Error('Too many wait.') });
    try {
      return await work();
    } finally {
      leave();
    }
  }

  #wait(name: string, key: Key, amount: number): Reservation {
    const place = this.#placeOf(name, key, amount);
    place.wait();
    key.waiting.push(place);
    this.#waiting += 1;
    this.#look(name, key);
    return place;
  }

  #placeOf(name: string, key: Key, amount: number): Waiting {
    key.places += 1;
    return new Waiting(amount, {
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
    if (place.isIn) this.#move(key, -place.amount);
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
      if (!first || !this.#fits(first.amount)) return;
      this.#letIn(next);
    }
  }

  #letIn(name: string): void {
    const key = this.#keys.get(name);
    const first = key?.waiting.shift();
    this.#ready.delete(name);
    if (!key || !first) return;
    this.#waiting -= 1;
    this.#move(key, first.amount);
    first.letIn();
    this.#look(name, key);
  }

  /** Queues the key behind the others if its first reservation is within its share. */
  #look(name: string, key: Key): void {
    const [first] = key.waiting;
    if (first && this.#isWithinShare(name, key, first.amount)) this.#ready.add(name);
  }

  #move(key: Key, amount: number): void {
    key.amount += amount;
    this.#used += amount;
  }

  #isWithinShare(name: string, key: Key, amount: number): boolean {
    const most = this.#options.mostOfKey(name);
    return most > 0 && (key.amount === 0 || key.amount + amount <= most);
  }

  #fits(amount: number): boolean {
    return this.#used === 0 || this.#used + amount <= this.#options.most;
  }
}

type MemoryBudgetOptions = {
  maxBytes: number;
  /** The share of the limit that one key may use. */
  share: number;
  maxWaiting: number;
  maxWaitingOfKey: number;
};

/** A budget of bytes. */
export class MemoryBudget extends FairBudget {
  constructor({ maxBytes, share, ...waiting }: MemoryBudgetOptions) {
    super({ most: maxBytes, mostOfKey: () => maxBytes * share, ...waiting });
  }
}

type PlaceListener = { resized: (more: number) => void; left: (place: Waiting) => void };

const inAlready = Promise.resolve();

class Waiting implements Reservation {
  amount: number;
  isIn = true;
  entered: Promise<void> = inAlready;
  readonly #listener: PlaceListener;
  #resolve: () => void = () => {};
  #hasLeft = false;

  constructor(amount: number, listener: PlaceListener) {
    this.amount = amount;
    this.#listener = listener;
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

  resize(amount: number): void {
    if (!this.isIn || this.#hasLeft) return;
    const more = amount - this.amount;
    this.amount = amount;
    this.#listener.resized(more);
  }

  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#listener.left(this);
  }
}
