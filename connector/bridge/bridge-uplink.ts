import type { Delivery } from '../../src/contract/uplink.ts';
import { isGone } from '../failure.ts';

/** A message that waits for its commit: given up only by a service that stops. */
export class Carried implements Delivery {
  readonly stored: () => void;
  readonly #stopping: AbortSignal;
  readonly #onFailed: (error: unknown) => void;

  constructor(stopping: AbortSignal, onStored: () => void, onFailed: (error: unknown) => void) {
    this.stored = onStored;
    this.#stopping = stopping;
    this.#onFailed = onFailed;
  }

  get isWithdrawn(): boolean {
    return this.#stopping.aborted;
  }

  failed(error: unknown): void {
    // Removed meanwhile: there is nothing left that it could belong to.
    if (isGone(error)) this.stored();
    else this.#onFailed(error);
  }
}
