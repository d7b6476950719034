/** More new ones do not go before the others at once: who comes under a new key each time is always new. */
const freshInARow = 4;

/**
 * Keys that take turns. One that is new goes before those that had theirs, once in a round (as FQ-CoDel has it,
 * RFC 8290 section 4.2): who asks for little hardly waits for who asks without end.
 */
export class Rotation<V> {
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
