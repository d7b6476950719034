/** Times in ms. */
export type Span = { start: number; end: number };
