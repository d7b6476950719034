import { DomainError } from '../errors.ts';
import { jsonPointer } from './parse.ts';

// A purpose is ten deep; nobody means a hundred.
const maxDepth = 64;

/**
 * Reads JSON from a stranger. Throws `invalid-input` for what is no JSON, nests deeper than 64 (seen
 * before anything is built), names a key `__proto__`, or has text that PostgreSQL cannot store
 * (U+0000, half a surrogate pair).
 */
export function parseJson(text: string): unknown {
  if (isDeeperThan(text, maxDepth)) {
    throw new DomainError('invalid-input', `The body is nested deeper than ${maxDepth} levels.`);
  }
  const value = parse(text);
  const problems = [...findUnwelcome(value, [])].slice(0, 20);
  if (problems.length > 0) {
    throw new DomainError('invalid-input', 'The request is not valid.', { problems });
  }
  return value;
}

/** Whether a text can be stored as it is. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new DomainError('invalid-input', 'The body is not JSON.', { cause });
  }
}

function isDeeperThan(text: string, limit: number): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (char === 0x22) inString = !inString;
    else if (inString) i += char === 0x5c ? 1 : 0;
    else if (char === 0x5b || char === 0x7b) depth += 1;
    else if (char === 0x5d || char === 0x7d) depth -= 1;
    if (depth > limit) return true;
  }
  return false;
}

type Place = readonly (string | number)[];

function* findUnwelcome(value: unknown, path: Place): Generator<{ path: string; message: string }> {
  if (typeof value === 'string') {
    if (!isStorable(value)) yield { path: jsonPointer(path), message: 'is not valid text' };
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* findUnwelcome(item, [...path, index]);
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      const place = [...path, key];
      if (key === '__proto__' || !isStorable(key)) {
        yield { path: jsonPointer(place), message: 'is not a valid name' };
      } else yield* findUnwelcome(item, place);
    }
  }
}
