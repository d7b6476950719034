/**
 * What one transaction may take of the event loop at a stretch, counted in what an ordinary measurement
 * takes: about a microsecond, to plan and to write it. Counted, not timed: a clock would make batches
 * small just when the machine is busy.
 */
export class Budget {
  #limit: number;
  #spent = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  spend(cost: number): void {
    this.#spent += cost;
  }

  /** From here on so much may be spent, whatever was before. */
  allow(cost: number): void {
    this.#limit = this.#spent + cost;
  }

  get spent(): number {
    return this.#spent;
  }

  get isSpent(): boolean {
    return this.#spent >= this.#limit;
  }
}

/** What else a message leads to, in the same measure. */
export const costs = {
  /** To judge a measurement against a cause that compares it with limits (`CompiledCause`). */
  cause: 1 / 60,
  /** To write down what a cause has collected, and so many outcomes of its window. */
  evidence: 1 / 16,
  outcome: 1 / 1_000,
  /** A firing that is recorded, rings or shows a text, and each of its causes. */
  firing: 5,
  firingCause: 3,
  /** An item that is rejected: it is told to the device as well. */
  rejection: 5,
  /** One that is counted only: like a good item. */
  counted: 1,
  /** To read a device, its configuration, evidence and newest measurements, from the database. */
  reading: 40,
};

/** So many accounts, at least, have their turn within a transaction where so many wait. */
export const turnsPerBatch = 50;
