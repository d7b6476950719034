import type { Measurement } from '../contract/measurement.ts';
import type { Moment } from './outcome.ts';
import type { CauseEvidence } from './runtime.ts';

/** A measurement, and what it makes of a window of one where it agrees: all causes that it meets have this object. */
export type GivenValue = Pick<Measurement, 'val'> & { moment: Moment; once: CauseEvidence };
