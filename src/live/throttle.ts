import type { Value } from './value.ts';

/** `lastTs`: of what was sent last; `waiting`: what is sent next, once it is due. */
type Sense = { lastTs: number; dueMs: number; waiting: Value | null };

/**
 * Lets a value of each sense through in `periodMs`: the first at once, then the newest of each period. It
 * remembers senses that had a value within the last period, no others.
 */
export class ValueThrottle {
  readonly periodMs: number;
  /** In the order in which they are due. */
  readonly #senses = new Map<string, Sense>();

  constructor(periodMs: number) {
    this.periodMs = periodMs;
  }

  /** Whether the value is to be sent now; else it waits, or gives way to a newer one. */
  isDue(value: Value, nowMs: number): boolean {
    const sense = this.#senses.get(value.key);
    if (!sense) {
      this.#sent(value, nowMs);
      return true;
    }
    const newestTs = sense.waiting?.ts ?? sense.lastTs;
    if (value.ts >= newestTs) sense.waiting = value;
    return false;
  }

  /** Those whose turn has come, at most `limit`. */
  takeDue(nowMs: number, limit: number): Value[] {
    const due: Value[] = [];
    for (const [key, { dueMs, waiting }] of this.#senses) {
      if (dueMs > nowMs || due.length >= limit) break;
      this.#senses.delete(key);
      if (!waiting) continue;
      this.#sent(waiting, nowMs);
      due.push(waiting);
    }
    return due;
  }

  /** When the next one may be due; Infinity while there is none. */
  get nextMs(): number {
    const [first] = this.#senses.values();
    return first?.dueMs ?? Infinity;
  }

  #sent({ key, ts }: Value, nowMs: number): void {
    this.#senses.set(key, { lastTs: ts, dueMs: nowMs + this.periodMs, waiting: null });
  }
}
