import { afterAll, beforeAll, describe } from 'vitest';
import { wire } from './harness.ts';

/** Registers the tests of these files of this folder again, with clients that speak MQTT 5. */
export function repeatInV5(names: string[]): void {
  beforeAll(() => void (wire.version = 5));
  afterAll(() => void (wire.version = 4));
  for (const name of names)
    describe(`${name}, MQTT 5`, async () => {
      // Under another name, because each file also runs by itself.
      await import(/* @vite-ignore */ `./${name}.test.ts?v5`);
    });
}
