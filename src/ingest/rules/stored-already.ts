import type { Measurement } from '../../contract/measurement.ts';

/** What tells a device's measurements apart. */
export function nameOfStored({ sId, ts, val }: Measurement): string {
  // Zero has no sign in the history.
  const place = typeof val === 'number' ? [val + 0] : [val.lat + 0, val.long + 0];
  return [sId, ts, ...place].join(' ');
}

/** Which of a device's measurements the history has, and those that the plan has taken in before. */
export class StoredAlready {
  readonly #names: Set<string>;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
  }

  /** To be asked once of each measurement. */
  isAgain(name: string): boolean {
    if (this.#names.has(name)) return true;
    this.#names.add(name);
    return false;
  }
}
