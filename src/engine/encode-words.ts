import { noWords } from './words.ts';
import { wordBits } from './words.ts';

/** Six outcomes a character, as base64 has them. */
const letterBits = 6;
const mask = 2 ** letterBits - 1;
const lettersPerWord = wordBits / letterBits;
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const codes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
const values = new Map([...codes].map((code, value) => [code, value]));
/** By code of the character. */
const valueOf = Uint8Array.from({ length: 128 }, (_, code) => values.get(code) ?? 0);

/** How many characters so many outcomes take. */
export function lettersOf(outcomes: number): number {
  return Math.ceil(outcomes / letterBits);
}

/** Written here, and read out as text at once. */
let scratch = Buffer.alloc(256);

/** The first `count` characters of a window's words as text, the lowest bits of the first one first. */
export function encodeWords(words: number[], count: number): string {
  const length = words.length * lettersPerWord;
  if (scratch.length < length) scratch = Buffer.alloc(2 * length);
  const text = scratch;
  for (let index = 0, at = 0; index < words.length; index++, at += lettersPerWord) {
    const word = words[index] as number;
    text[at] = codes[word & mask] as number;
    text[at + 1] = codes[(word >> letterBits) & mask] as number;
    text[at + 2] = codes[(word >> (2 * letterBits)) & mask] as number;
    text[at + 3] = codes[(word >> (3 * letterBits)) & mask] as number;
    text[at + 4] = codes[(word >> (4 * letterBits)) & mask] as number;
  }
  return text.toString('latin1', 0, count);
}

/** The words that such a text was made of; characters beyond its end, or of another kind, are zeros. */
export function decodeWords(text: string, windowLength: number): number[] {
  const words = noWords(windowLength);
  for (let index = 0, at = 0; index < words.length; index++) {
    let word = 0;
    for (let bits = 0; bits < wordBits; bits += letterBits) {
      word |= (valueOf[text.charCodeAt(at++)] ?? 0) << bits;
    }
    words[index] = word;
  }
  return words;
}
