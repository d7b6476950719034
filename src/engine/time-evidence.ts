import type { Bins } from './bins.ts';

/** Agreeing outcomes one after the other, of a cause with `forMs`. Times in ms; `t`: when a measurement was taken. */
export type Run = {
  sinceT: number;
  newestT: number;
  /** How old its newest measurement was at its arrival. */
  newestAgeMs: number;
  /** When it is complete, and when its tick is due if nothing forces that before; null while outcomes are missing. */
  due: { t: number; ts: number } | null;
  isComplete: boolean;
};

/** Since when nothing was heard of the sense of a cause with `noneForMs`; when it was complete, once its tick has run. */
export type Silence = { sinceTs: number; completeTs: number | null };

/** What members of time add to a cause's evidence. Never changed: another one takes its place. */
export type CauseTime = {
  /** When the last measurement was taken that it evaluated: the next one is not taken before that. */
  lastT: number | null;
  /** The newest one that agreed: when it was taken, and what was compared where that does not follow from it. */
  agreedT: number | null;
  compared: number | undefined;
  run: Run | null;
  silence: Silence | null;
  bins: Bins | null;
  /** With `maxAgeMs`: when each outcome of its window was taken, oldest first. */
  outcomeTs: readonly number[] | null;
  /** With that, in an episode: its last outcomes, if it is lenient (`episode.ts`). */
  lately: readonly TimedOutcome[] | null;
};

export type TimedOutcome = { t: number; agrees: boolean };

/** `newestT`: the newest time that any of the causes evaluated, or of a tick; kept where a cause has `maxAgeMs`. */
export type EventTime = {
  newestT: number | null;
  causes: readonly (CauseTime | null)[];
};

export const noTime: CauseTime = {
  lastT: null,
  agreedT: null,
  compared: undefined,
  run: null,
  silence: null,
  bins: null,
  outcomeTs: null,
  lately: null,
};
