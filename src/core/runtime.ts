import type { Measurement } from './measurement.ts';

/** A place in a profile: purpose and state number. */
export type Place = { puId: number; stId: number };

/**
 * Where a device stands and the evidence its causes have collected: plain JSON, kept with the
 * device between any two measurements. (Owner of this file: the engine; the fields are its own.)
 */
export type Runtime = Place & { v: 1 };

export type Seen = Pick<Measurement, 'val' | 'ts'>;
