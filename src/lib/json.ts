/** Text that JSON writes unchanged, one byte per character. */
const plain = /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/;

/**
 * The size of a value as JSON, in bytes, without members that parsing fills in: `false`, empty lists and objects. It
 * counts instead of writing, in a fraction of the time of `JSON.stringify` with a replacer.
 */
export function countJsonBytes(value: unknown): number {
  if (Array.isArray(value)) {
    const bytes = value.reduce(
      (sum: number, item) => sum + (isFilledIn(item) ? 4 : countJsonBytes(item)),
      0,
    );
    return 2 + bytes + Math.max(0, value.length - 1);
  }
  if (typeof value === 'object' && value !== null) {
    let bytes = 1;
    for (const key of Object.keys(value)) {
      const member = (value as Record<string, unknown>)[key];
      if (!isFilledIn(member)) bytes += countText(key) + 1 + countJsonBytes(member) + 1;
    }
    return Math.max(2, bytes);
  }
  return typeof value === 'string' ? countText(value) : String(value).length;
}

function isFilledIn(value: unknown): boolean {
  if (typeof value !== 'object') return value === false || value === undefined;
  if (value === null) return false;
  for (const _key in value) return false;
  return true;
}

function countText(text: string): number {
  if (plain.test(text)) return text.length + 2;
  return new TextEncoder().encode(JSON.stringify(text)).length;
}

/**
 * The most `{`, `[` and `,` that JSON text from outside may have outside its strings. The work to build, check and
 * refuse a value grows with them; this many take less than 10 ms. A member name that is longer than any of ours counts
 * for more, because it costs more.
 */
export const maxJsonParts = 20_000;

/** The longest name of the interface is shorter. */
const longName = 16;

const quote = 0x22;
const colon = 0x3a;
const comma = 0x2c;
const backslash = 0x5c;

/**
 * Measures how deep a text nests, and how many `{`, `[` and `,` it has outside its strings, before anything is built
 * from it. Stops as soon as one of the two exceeds its limit.
 */
export function measureJson(
  text: string,
  maxDepth = Infinity,
  maxParts = maxJsonParts,
): { depth: number; parts: number } {
  let depth = 0;
  let parts = 0;
  for (let at = 0; at < text.length && depth <= maxDepth && parts <= maxParts; at += 1) {
    const char = text.charCodeAt(at);
    if (char === quote) {
      const end = endOfString(text, at);
      const length = end - at - 1;
      if (length > longName && isName(text, end)) parts += Math.ceil(length / longName) - 1;
      at = end;
    } else if (char === comma) {
      parts += 1;
    } else if (char === 0x5b || char === 0x7b) {
      depth += 1;
      parts += 1;
    } else if (char === 0x5d || char === 0x7d) {
      depth -= 1;
    }
  }
  return { depth, parts };
}

/** Whether the string that ends at `end` is a member name, that is, a colon follows. */
function isName(text: string, end: number): boolean {
  let after = end + 1;
  while (isSpace(text.charCodeAt(after))) after += 1;
  return text.charCodeAt(after) === colon;
}

const isSpace = (char: number) => char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09;

/** The index of the closing quote of the string that begins at `start`, or the end of the text. */
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text.charCodeAt(before) === backslash) before -= 1;
  return (at - before) % 2 === 0;
}

/** A place in a JSON document as a JSON Pointer; RFC 6901 section 3. */
export function jsonPointer(path: readonly PropertyKey[]): string {
  return path.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Where a text stops being JSON. Lines and columns count from 1. */
type JsonError = { line: number; column: number; found: string; expected: string };

const space = /[ \t\r\n]*/y;
const token =
  // oxlint-disable-next-line no-control-regex -- a string has none of them
  /[{}[\],:]|"(?:[^"\\\0-\x1f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)\b/y;

/** What may come next, by name: its description, and the tokens that match. */
const places = {
  value: ['a value', /^["{[\dtfn-]/],
  'value or end': ['a value or ]', /^["{[\dtfn\]-]/],
  name: ['a name in double quotes', /^"/],
  'name or end': ['a name in double quotes or }', /^["}]/],
  colon: [':', /^:/],
  'after member': [', or }', /^[,}]/],
  'after element': [', or ]', /^[,\]]/],
  end: ['the end of the file', /^$/],
} as const satisfies Record<string, readonly [string, RegExp]>;
type PlaceName = keyof typeof places;

/**
 * Finds the first error that keeps `text` from being JSON; null if it is JSON. The messages of `JSON.parse` differ
 * between versions, and most of them name no place.
 */
export function findJsonError(text: string): JsonError | null {
  const open: string[] = [];
  let next: PlaceName = 'value';
  for (let at = skipSpace(text, 0); ;) {
    const found = readToken(text, at);
    const [expected, fits] = places[next];
    if (found === null || !fits.test(found)) return describe(text, at, expected);
    if (found === '') return null;
    if (found === '{' || found === '[') open.push(found);
    else if (found === '}' || found === ']') open.pop();
    next = follow(found, next, open.at(-1));
    at = skipSpace(text, at + found.length);
  }
}

function follow(found: string, was: PlaceName, inside: string | undefined): PlaceName {
  if (found === '{') return 'name or end';
  if (found === '[') return 'value or end';
  if (found === ':') return 'value';
  if (found === ',') return inside === '{' ? 'name' : 'value';
  if (was === 'name' || (was === 'name or end' && found !== '}')) return 'colon';
  if (inside === undefined) return 'end';
  return inside === '{' ? 'after member' : 'after element';
}

/** The token at `at`; empty at the end of the text, null if there is none. */
function readToken(text: string, at: number): string | null {
  if (at === text.length) return '';
  token.lastIndex = at;
  return token.exec(text)?.[0] ?? null;
}

function skipSpace(text: string, at: number): number {
  space.lastIndex = at;
  return at + (space.exec(text)?.[0].length ?? 0);
}

function describe(text: string, at: number, expected: string): JsonError {
  const before = text.slice(0, at).split('\n');
  const rest = /^[^\s,:[\]{}]+|^./u.exec(text.slice(at))?.[0].slice(0, 30);
  const found = rest === undefined ? 'the end of the file' : JSON.stringify(rest);
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, found, expected };
}

/** The error for people: "line 1, column 7: expected a value, found "}"". */
export const tellJsonError = ({ line, column, expected, found }: JsonError): string =>
  `line ${line}, column ${column}: expected ${expected}, found ${found}`;
