import { isUtf8 } from 'node:buffer';

/**
 * The text of bytes that hold JSON, without the byte order mark that some programs put in front (RFC 8259 section 8.1
 * allows to ignore it). Null where they are not UTF-8: decoded leniently, each wrong byte would become U+FFFD, and
 * different names and passwords the same.
 */
export function decodeUtf8(bytes: Buffer): string | null {
  if (!isUtf8(bytes)) return null;
  const hasMark = bytes.length >= 3 && bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return bytes.toString('utf8', hasMark ? 3 : 0);
}

/** Where a text stops being JSON; lines and columns count from 1. */
export type JsonError = { line: number; column: number; found: string; expected: string };

const space = /[ \t\r\n]*/y;
const token =
  // oxlint-disable-next-line no-control-regex -- a string has none of them
  /[{}[\],:]|"(?:[^"\\\0-\x1f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null)\b/y;

/** What may come next, by name: the words for people, and the tokens that are it. */
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
 * Finds the first thing that keeps `text` from being JSON, null where it is JSON. The messages of
 * `JSON.parse` differ from version to version, and most of them name no place.
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

/** The token that begins there; empty at the end of the text, null where it is none. */
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

/** The place in words: "line 1, column 7: expected a value, found "}"". */
export const tellJsonError = ({ line, column, expected, found }: JsonError): string =>
  `line ${line}, column ${column}: expected ${expected}, found ${found}`;
