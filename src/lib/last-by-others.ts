/** When somebody last did something: the newest one, and anybody else. In two times, however many there are. */
export class LastByOthers {
  #newest: number | null = null;
  #atMs = -Infinity;
  #othersAtMs = -Infinity;

  note(who: number, nowMs: number): void {
    if (who !== this.#newest) {
      this.#othersAtMs = this.#atMs;
      this.#newest = who;
    }
    this.#atMs = nowMs;
  }

  /** When somebody other than this one last did; `-Infinity`: never. */
  than(who: number): number {
    return who === this.#newest ? this.#othersAtMs : this.#atMs;
  }
}
