/** Outcomes in a word: what is shifted stays one of V8's small integers, and makes five characters of base64. */
export const wordBits = 30;

/** All bits of a word. */
export const wordMask = 2 ** wordBits - 1;

/** Room for so many outcomes, none of which agreed. */
export function noWords(windowLength: number): number[] {
  const words: number[] = [];
  for (let room = 0; room < windowLength; room += wordBits) words.push(0);
  return words;
}

/** The words of a window in which the outcome of that age (the newest has 0) agreed. */
export function wordsOfWindow(windowLength: number, agreed: (age: number) => boolean): number[] {
  const words = noWords(windowLength);
  for (let age = 0; age < windowLength; age++) {
    if (!agreed(age)) continue;
    const index = Math.floor(age / wordBits);
    words[index] = (words[index] ?? 0) | (1 << (age % wordBits));
  }
  return words;
}

/** The oldest 30 outcomes that a long window has room for. */
export function lastWord(words: number[], windowLength: number): number {
  const youngest = windowLength - wordBits;
  const [index, from] = [Math.floor(youngest / wordBits), youngest % wordBits];
  const [word, older] = [words[index] ?? 0, words[index + 1] ?? 0];
  return (word >> from) | ((older << (wordBits - from)) & wordMask);
}

/** How many bits are set: in pairs, then fours, then bytes, and all bytes summed up in the highest one. */
export function countOnes(word: number): number {
  const pairs = word - ((word >>> 1) & 0x55555555);
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333);
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
