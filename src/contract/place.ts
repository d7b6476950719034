/** A place in a profile: purpose and state number. */
export type Place = { puId: number; stId: number };
