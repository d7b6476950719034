import { expect, it } from 'vitest';
import { deriveKeys, deriveSecretCheck } from '../../src/config/keys.ts';

const first = 'a'.repeat(48);
const second = 'b'.repeat(48);

it('derives a different key for each use, the same each time', () => {
  const { secretIds, ...keys } = deriveKeys(first);
  const all = Object.values(keys).flat();
  expect(new Set(all.map((key) => key.toString('hex'))).size).toBe(all.length);
  expect(all.every((key) => key.length === 32)).toBe(true);
  expect(deriveKeys(first)).toEqual({ ...keys, secretIds });
  expect(secretIds).toEqual([deriveSecretCheck(first).slice(0, 8)]);
});

it('keeps the keys of the previous secret behind the new ones', () => {
  const changed = deriveKeys(second, first);
  expect(changed.accountTokens).toEqual([
    ...deriveKeys(second).accountTokens,
    ...deriveKeys(first).accountTokens,
  ]);
});

it('recognises a secret by a value that is no key and reveals nothing of it', () => {
  const check = deriveSecretCheck(first);
  expect(check).toMatch(/^[0-9a-f]{64}$/);
  expect(deriveSecretCheck(first)).toBe(check);
  expect(deriveSecretCheck(second)).not.toBe(check);
  const keys = Object.values(deriveKeys(first)).flat();
  expect(keys.map((key) => key.toString('hex'))).not.toContain(check);
});
