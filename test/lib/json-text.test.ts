import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findJsonError } from '../../src/lib/json.ts';

describe('the place where a text stops being JSON', () => {
  test.each([
    ['{"a": }', 1, 7, 'a value', '"}"'],
    ['{a: 1}', 1, 2, 'a name in double quotes or }', '"a"'],
    ["{'a': 1}", 1, 2, 'a name in double quotes or }', `"'a'"`],
    ['{"a" 1}', 1, 6, ':', '"1"'],
    ['{"a": 1\n "b": 2}', 2, 2, ', or }', String.raw`"\"b\""`],
    ['[1 2]', 1, 4, ', or ]', '"2"'],
    ['[1,]', 1, 4, 'a value', '"]"'],
    ['[01]', 1, 2, 'a value or ]', '"01"'],
    ['{"a": True}', 1, 7, 'a value', '"True"'],
    ['// x\n{}', 1, 1, 'a value', '"//"'],
    ['{} {}', 1, 4, 'the end of the file', '"{"'],
    ['{"a": 1', 1, 8, ', or }', 'the end of the file'],
    ['["a]', 1, 2, 'a value or ]', String.raw`"\"a"`],
    ['', 1, 1, 'a value', 'the end of the file'],
  ])('%j', (text, line, column, expected, found) => {
    expect(findJsonError(text)).toEqual({ line, column, found, expected });
  });

  test('is exactly where JSON.parse throws', () => {
    const cut = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', '"', '1', '{', 'null', ' ', '\\'))
      .map(([text, at, more]) => {
        const place = at % (text.length + 1);
        return text.slice(0, place) + more + text.slice(place + (at % 2));
      });
    fc.assert(
      fc.property(cut, (text) => {
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        expect(findJsonError(text) === null).toBe(isJson);
      }),
      { numRuns: 2_000 },
    );
  });
});
