/** Rests between the turns of a loop that others can wake. */
export class WakeableRest {
  #isWoken = false;
  #wake: (() => void) | undefined;

  /** A turn begins: who wakes from now on ends the rest behind it, also before that begins. */
  begin(): void {
    this.#isWoken = false;
  }

  wake(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  /** Until it is woken, `ms` at most. */
  async rest(ms: number): Promise<void> {
    if (this.#isWoken || ms <= 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
    this.#wake = undefined;
  }
}
