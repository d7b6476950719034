import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countJsonBytes } from '../../src/lib/json.ts';

/** Omits what parsing fills in. */
function withoutDefault(_key: string, value: unknown): unknown {
  const isEmpty = typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  return value === false || isEmpty ? undefined : value;
}

test('are those that JSON.stringify writes, without what parsing fills in', () => {
  const text = fc.string({ unit: 'binary' });
  fc.assert(
    fc.property(fc.dictionary(text, fc.jsonValue({ stringUnit: 'binary' })), (value) => {
      const written = JSON.stringify({ value, x: 1 }, withoutDefault);
      expect(countJsonBytes({ value, x: 1 })).toBe(Buffer.byteLength(written));
    }),
  );
});
