/** A place in a profile: purpose and state number. */
export type Place = { puId: number; stId: number };

/** Nowhere is no place: two nulls are not the same one. */
export function isSamePlace(one: Place | null, other: Place | null): boolean {
  return one !== null && one.puId === other?.puId && one.stId === other.stId;
}
