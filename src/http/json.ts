import { nextTurn } from '../lib/in-turns.ts';
import { maxJsonParts, measureJson } from '../lib/json-extent.ts';
import { DomainError, type Problem } from '../errors.ts';
import { findJsonError, tellJsonError } from '../lib/json.ts';
import { jsonPointer } from '../lib/json-pointer.ts';

// A purpose is ten levels deep.
const maxDepth = 64;
const maxProblems = 20;
/** Shorter ones are read without a pause for others. */
const longText = 16_384;

/**
 * Reads untrusted JSON; yields to the event loop while a text is long. Rejects with `invalid-input` what is
 * no JSON, nests deeper than 64 or has more than 20,000 `{`, `[` and `,` (both seen before anything is
 * built), names a key `__proto__`, or has text that PostgreSQL cannot store (U+0000, half a surrogate
 * pair).
 */
export async function parseJsonBody(text: string): Promise<unknown> {
  const { depth, parts } = measureJson(text, maxDepth);
  if (depth > maxDepth) throw tooMuch(`is nested deeper than ${maxDepth} levels`);
  if (parts > maxJsonParts)
    throw tooMuch(`has more than ${maxJsonParts} {, [ and , beside its texts`);
  const isLong = text.length > longText;
  if (isLong) await nextTurn();
  const value = parse(text);
  if (isLong) await nextTurn();
  const problems: Problem[] = [];
  collectUnwelcome(value, null, problems);
  if (problems.length > 0) {
    throw new DomainError('invalid-input', 'The request is not valid.', { problems });
  }
  if (isLong) await nextTurn();
  return value;
}

/** Whether a text can be stored as it is. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/**
 * Whether what a percent-encoded text stands for is UTF-8 (RFC 3986 section 2.5). Decoded leniently, each wrong byte
 * would become U+FFFD, and different texts the same.
 */
export function isPercentEncodedUtf8(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function tooMuch(what: string): DomainError {
  return new DomainError('invalid-input', `The body ${what}.`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new DomainError('invalid-input', `The body is not JSON${placeIn(text)}.`, { cause });
  }
}

/** Where, in a text that is looked through at once. */
function placeIn(text: string): string {
  const error = text.length > longText ? null : findJsonError(text);
  if (error === null) return '';
  return `: ${tellJsonError(error).replaceAll('the end of the file', 'the end of the body')}`;
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
