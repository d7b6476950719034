import { DomainError, type Problem } from '../errors.ts';
import { jsonPointer } from './parse.ts';

// A purpose is ten deep; nobody means a hundred.
const maxDepth = 64;
// What a problem is found in may be a hundred times as large in memory as it was on the wire.
const maxValues = 30_000;
const maxProblems = 20;

/**
 * Reads JSON from a stranger. Throws `invalid-input` for what is no JSON, nests deeper than 64 or has
 * more than 30,000 values (both seen before anything is built), names a key `__proto__`, or has text
 * that PostgreSQL cannot store (U+0000, half a surrogate pair).
 */
export function parseJson(text: string): unknown {
  const { depth, values } = measure(text);
  if (depth > maxDepth) throw tooMuch(`is nested deeper than ${maxDepth} levels`);
  if (values > maxValues) throw tooMuch(`has more than ${maxValues} values`);
  const value = parse(text);
  const problems: Problem[] = [];
  collectUnwelcome(value, null, problems);
  if (problems.length > 0) {
    throw new DomainError('invalid-input', 'The request is not valid.', { problems });
  }
  return value;
}

/** Whether a text can be stored as it is. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

function tooMuch(what: string): DomainError {
  return new DomainError('invalid-input', `The body ${what}.`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new DomainError('invalid-input', 'The body is not JSON.', { cause });
  }
}

/** Reads no further than it takes to know that one of the two is too much. */
function measure(text: string): { depth: number; values: number } {
  let depth = 0;
  let values = 1;
  let inString = false;
  for (let i = 0; i < text.length && depth <= maxDepth && values <= maxValues; i += 1) {
    const char = text.charCodeAt(i);
    if (char === 0x22) inString = !inString;
    else if (inString) i += char === 0x5c ? 1 : 0;
    else if (char === 0x5b || char === 0x7b) depth += 1;
    else if (char === 0x5d || char === 0x7d) depth -= 1;
    else if (char === 0x2c) values += 1;
  }
  return { depth, values };
}

/** A place in the document, written out only where something is wrong. */
type Place = { parent: Place; key: string | number } | null;

function collectUnwelcome(value: unknown, place: Place, problems: Problem[]): void {
  if (problems.length >= maxProblems) return;
  if (typeof value === 'string') {
    if (!isStorable(value)) problems.push({ path: pointer(place), message: 'is not valid text' });
  } else if (Array.isArray(value)) {
    for (let key = 0; key < value.length; key += 1) {
      collectUnwelcome(value[key], { parent: place, key }, problems);
    }
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      const inner = { parent: place, key };
      if (key === '__proto__' || !isStorable(key)) {
        problems.push({ path: pointer(inner), message: 'is not a valid name' });
      } else collectUnwelcome(item, inner, problems);
    }
  }
}

function pointer(place: Place): string {
  const path: (string | number)[] = [];
  for (let at = place; at !== null; at = at.parent) path.unshift(at.key);
  return jsonPointer(path);
}
