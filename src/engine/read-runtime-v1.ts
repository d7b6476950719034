import type { LiveEvent } from './compile-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import type { Agreed, CauseEvidence, EventEvidence } from './runtime.ts';
import { noEventEvidence } from './runtime.ts';
import { holds, windowOf } from './window.ts';
import { wordsOfWindow } from './words.ts';

/**
 * What was stored of a cause until version 0.1: its window is text, 1 for an outcome that agreed and 0 for
 * another, the newest last. Of a position `val` is 1 or 0, and the rest stands beside it.
 */
type OldCause = {
  window: string;
  baseline?: number;
  agreed?: { val: number; ts: number; lat?: number; long?: number };
};

export type OldEvent = { causes: (OldCause | null)[]; rung?: true };

/** Null where nothing was collected. */
export function readOldEvent(event: LiveEvent, old: OldEvent): EventEvidence | null {
  const causes = event.causes.map((cause, index) => readOldCause(cause, old.causes[index] ?? null));
  const rung = old.rung === true;
  if (!rung && causes.every((collected) => collected === null)) return null;
  const holding = event.causes.filter((cause, index) => holds(cause, causes[index])).length;
  const { time } = noEventEvidence(event);
  return { causes, holding, isInEpisode: rung, lately: null, time };
}

function readOldCause(cause: CompiledCause, old: OldCause | null): CauseEvidence | null {
  if (!old) return null;
  const { window, baseline } = old;
  const newest = window.length - 1;
  const words = wordsOfWindow(cause.windowLength, (age) => window[newest - age] === '1');
  return windowOf(cause, window.length, words, { agreed: agreedOf(old), baseline });
}

function agreedOf({ agreed }: OldCause): Agreed | undefined {
  if (!agreed) return undefined;
  const { val, ts, lat, long } = agreed;
  return { val: lat === undefined || long === undefined ? val : { lat, long }, ts };
}
