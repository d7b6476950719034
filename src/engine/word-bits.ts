/** Outcomes in a word: what is shifted stays one of V8's small integers, and makes five characters of base64. */
export const wordBits = 30;
