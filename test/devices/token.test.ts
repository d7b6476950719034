import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { pickAsked } from '../../src/devices/schema.ts';
import { bytesOfToken, deriveToken, isSameToken, isToken } from '../../src/devices/tokens.ts';

const key = Buffer.alloc(32, 1);
const older = Buffer.alloc(32, 2);
const uuid = '0f8fad5b-d9cb-469f-a165-70867728950e';
const version = fc.integer({ min: 1, max: 2 ** 31 - 1 });

describe('a device token', () => {
  test('is short and URL-safe, and is valid only for its own version of its own device', () => {
    fc.assert(
      fc.property(fc.uuid(), fc.uuid(), version, version, (one, other, v, w) => {
        const token = deriveToken([key], one, v);
        expect(token).toMatch(/^[\w-]{32,43}$/);
        expect(isToken([key], one, v, token)).toBe(true);
        expect(isToken([key], one, w, token)).toBe(v === w);
        expect(isToken([key], other, v, token)).toBe(one === other);
        expect(isToken([older], one, v, token)).toBe(false);
      }),
    );
  });

  test('made under the previous secret is still accepted, and the newest secret makes new ones', () => {
    const token = deriveToken([older], uuid, 1);
    expect(isToken([key, older], uuid, 1, token)).toBe(true);
    expect(deriveToken([key, older], uuid, 1)).toBe(deriveToken([key], uuid, 1));
  });

  test('is not matched by anything else, however long', () => {
    const token = deriveToken([key], uuid, 1);
    fc.assert(
      fc.property(fc.string({ maxLength: 100 }), (text) => {
        expect(isToken([key], uuid, 1, text)).toBe(false);
        expect(isToken([key], uuid, 1, token + text)).toBe(text === '');
        expect(isToken([key], uuid, 1, token.slice(1) + text)).toBe(false);
      }),
    );
    // A character whose low byte is that of the right one.
    const lookalike = String.fromCodePoint(0x100 + (token.codePointAt(0) ?? 0)) + token.slice(1);
    expect(isToken([key], uuid, 1, lookalike)).toBe(false);
  });

  test('that is known is distinguished from all others', () => {
    const token = deriveToken([key], uuid, 1);
    const known = bytesOfToken(token);
    expect(isSameToken(known, token)).toBe(true);
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), fc.nat({ max: 31 }), (text, at) => {
        expect(isSameToken(known, text)).toBe(false);
        expect(isSameToken(known, token + text)).toBe(text === '');
        // As long, and wrong from there on.
        const changed = token.slice(0, at) + text.slice(0, 32 - at).padEnd(32 - at, '~');
        expect(isSameToken(known, changed)).toBe(changed === token);
        // As much of the right one as fits.
        expect(isSameToken(known, `${token.slice(0, 31)}\u00e9`)).toBe(false);
      }),
    );
  });
});

describe('the choice of a connector', () => {
  const connectors = [1, 2, 3].map((id) => ({
    id,
    kind: 'mqtt' as const,
    name: '',
    protocol: 'mqtt',
    host: '',
    port: 1,
  }));
  const added = { id: 4, kind: 'mqtt' as const, name: '', protocol: 'mqtt', host: '', port: 1 };

  test('does not depend on their order, and adding one moves devices to that one only', () => {
    fc.assert(
      fc.property(fc.uuid(), fc.shuffledSubarray(connectors, { minLength: 3 }), (device, order) => {
        const before = pickAsked(connectors, device, undefined);
        expect(pickAsked(order, device, undefined)).toBe(before);
        const after = pickAsked([...order, added], device, undefined);
        expect([before, added]).toContain(after);
      }),
    );
  });

  test('gives each about the same share', () => {
    const uuids = Array.from({ length: 4_000 }, (_, n) => `device-${n}`);
    for (const { id } of connectors) {
      const share = uuids.filter(
        (device) => pickAsked(connectors, device, undefined).id === id,
      ).length;
      expect(share).toBeGreaterThan(1_150);
      expect(share).toBeLessThan(1_520);
    }
  });

  test('is refused if there is none', () => {
    expect(() => pickAsked([], uuid, undefined)).toThrow('no connector');
  });
});
