/**
 * The most `{`, `[` and `,` that a JSON text from outside may have, texts in quotes left out. What is
 * built from it, checked and refused grows with them: this many take less than 10 ms. A name of a member that
 * is longer than any of ours counts for more, as it takes more.
 */
export const maxJsonParts = 20_000;

/** The longest that the interface has are shorter. */
const longName = 16;

const quote = 0x22;
const colon = 0x3a;
const comma = 0x2c;
const backslash = 0x5c;

/**
 * How deep a text nests, and how many `{`, `[` and `,` it has outside of its strings, before anything
 * is built from it. Reads no further than it takes to know that one of the two is above its bound.
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

/** Whether the string that ends there is the name of a member: a colon is next. */
function isName(text: string, end: number): boolean {
  let after = end + 1;
  while (isSpace(text.charCodeAt(after))) after += 1;
  return text.charCodeAt(after) === colon;
}

const isSpace = (char: number) => char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09;

/** Where the string that begins at `start` ends: the place of its quote, or the end of the text. */
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
