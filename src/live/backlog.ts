import type { LiveDevice } from '../bus/bus.ts';
import { Value } from './value.ts';

type Heard = { devices: LiveDevice[]; count: number; heardMs: number };

/** Of one account: about 20 MB. More wait only where values come faster than streams can be written. */
const maxValues = 100_000;
const maxOfAll = 500_000;

/** What an account's streams are still to be given. `all`: counts the values of all accounts. */
export class Backlog {
  readonly #all: { values: number };
  #heard: Heard[] = [];
  #values = 0;

  constructor(all: { values: number }) {
    this.#all = all;
  }

  get isEmpty(): boolean {
    return this.#heard.length === 0;
  }

  /** When the oldest was heard; undefined while there is none. */
  get oldestMs(): number | undefined {
    return this.#heard[0]?.heardMs;
  }

  /** False where there is no room for them. */
  add(devices: LiveDevice[], heardMs: number): boolean {
    const count = devices.reduce((sum, { values }) => sum + values.length, 0);
    if (this.#values + count > maxValues || this.#all.values + count > maxOfAll) return false;
    this.#count(count);
    this.#heard.push({ devices, count, heardMs });
    return true;
  }

  /** The oldest messages, until there are so many values. */
  take(limit: number): Value[] {
    const values: Value[] = [];
    while (values.length < limit) {
      const heard = this.#heard.shift();
      if (!heard) break;
      this.#count(-heard.count);
      for (const device of heard.devices)
        for (const value of device.values) values.push(new Value(device, value));
    }
    return values;
  }

  clear(): void {
    this.#heard = [];
    this.#count(-this.#values);
  }

  #count(values: number): void {
    this.#values += values;
    this.#all.values += values;
  }
}
