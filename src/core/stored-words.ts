import { noWords, wordBits } from './window.ts';

/** Six outcomes a character, as base64 has them. */
const letterBits = 6;
const lettersPerWord = wordBits / letterBits;
const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const codes = letters.split('').map((letter) => letter.charCodeAt(0));
const values = new Map(codes.map((code, value) => [code, value]));
const last = 2 ** letterBits - 1;

/** How many characters so many outcomes take. */
export function lettersOf(outcomes: number): number {
  return Math.ceil(outcomes / letterBits);
}

/** Words of a window as text, the lowest bits of the first one first. */
export function encodeWords(words: number[]): string {
  const text: number[] = [];
  for (const word of words) {
    for (let at = 0; at < wordBits; at += letterBits) text.push(codes[(word >> at) & last] ?? 0);
  }
  return String.fromCharCode(...text);
}

/** The words that such a text was made of; characters beyond its end, or of another kind, are zeros. */
export function decodeWords(text: string, windowLength: number): number[] {
  const words = noWords(windowLength);
  for (let at = 0; at < words.length * lettersPerWord; at++) {
    const value = values.get(text.charCodeAt(at)) ?? 0;
    const index = Math.floor(at / lettersPerWord);
    words[index] = (words[index] ?? 0) | (value << (letterBits * (at % lettersPerWord)));
  }
  return words;
}
