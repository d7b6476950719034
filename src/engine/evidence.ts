import { collectDeferred } from './collect-deferred.ts';
import { collect } from './collect-evidence.ts';
import type { CompiledCause } from './compile-cause.ts';
import type { Draft } from './draft.ts';
import type { GivenValue } from './given.ts';
import type { CauseReader } from './readers.ts';
import type { CauseEvidence } from './runtime.ts';
import { agreesWithLimits } from './thresholds.ts';

/** By who reads them: those of the state's own events, or of global ones. */
export type Deferred = Map<CauseReader[], DeferredNumbers>;

/** Fewer measurements are collected one by one. */
const leastDeferred = 8;

/**
 * The numbers of one sense that its readers have met, so that those whose event does not fire take them
 * together, later. Where windows are long a cause that lacks 500 outcomes lacks some of them for the next 499
 * measurements: to go through these cause by cause takes a tenth of what each alone does. Where they have
 * one outcome, one cause that disagrees says that the event does not fire, and the next number is all
 * that counts.
 */
export class DeferredNumbers {
  readonly #readers: CauseReader[];
  readonly #vals: number[] = [];
  readonly #onces: CauseEvidence[] = [];
  /** By reader: the last cause that kept its event from firing, by its place in the reader's limits. */
  readonly #blocking: number[];
  /** By reader of which only the newest number counts: whether its event is in an episode, which disagreeing ends. */
  readonly #isOpen: boolean[];
  /** By reader: the first number that it has not collected, and the first one that it must look at at once. */
  readonly #from: number[];
  readonly #until: number[];
  /** The reader that is offered the newest number; those behind it were not yet. */
  #offering: number;

  constructor(readers: CauseReader[], draft: Draft) {
    this.#readers = readers;
    this.#isOpen = readers.map((reader) => isOpen(reader, draft));
    this.#from = readers.map(() => 0);
    this.#until = readers.map(() => 0);
    this.#blocking = readers.map(() => 0);
    this.#offering = readers.length;
  }

  /** Each reader is then offered it, or skips it. `once`: as `collect` takes it. */
  push(val: number, once: CauseEvidence): void {
    this.#vals.push(val);
    this.#onces.push(once);
  }

  /** Whether the reader with this number takes the newest number later. If not it has all before that one. */
  defers(index: number, draft: Draft): boolean {
    this.#offering = index;
    const newest = this.#vals.length - 1;
    const val = this.#vals[newest] as number;
    if (newest < (this.#until[index] as number)) {
      if (!this.#isWatched(index, val, draft)) return true;
    } else if (this.#isBlocked(index, val)) {
      this.#until[index] = newest + 1;
      return true;
    }
    this.#collect(index, newest, draft);
    return false;
  }

  /** The reader has collected the newest number. */
  offered(index: number, draft: Draft): void {
    const next = this.#vals.length;
    this.#from[index] = next;
    const reader = this.#readers[index] as CauseReader;
    this.#isOpen[index] = isOpen(reader, draft);
    const ahead = numbersToDefer(reader, draft);
    this.#until[index] = ahead < leastDeferred ? next : next + ahead;
  }

  /** All readers have been offered the newest number. */
  endOffer(): void {
    this.#offering = this.#readers.length;
  }

  /** All readers have collected what they were offered. It is over then. */
  end(draft: Draft): void {
    const count = this.#vals.length;
    for (let index = 0; index < this.#readers.length; index++)
      this.#collect(index, index < this.#offering ? count : count - 1, draft);
  }

  /** Whether this number may end an episode of the reader's event: that is said at once. */
  #isWatched(index: number, val: number, draft: Draft): boolean {
    const reader = this.#readers[index] as CauseReader;
    const { event, causes, limits } = reader;
    if (!limits || !isOpen(reader, draft)) return false;
    if (event.isLenient) return true;
    for (let at = 0; at < causes.length; at++) if (!agreesWithLimits(limits, at, val)) return true;
    return false;
  }

  /** Whether a reader of which only the newest number counts has a cause that disagrees with this one. */
  #isBlocked(index: number, val: number): boolean {
    const { isNewestOnly, limits, causes } = this.#readers[index] as CauseReader;
    if (!isNewestOnly || !limits || this.#isOpen[index]) return false;
    const last = this.#blocking[index] as number;
    if (!agreesWithLimits(limits, last, val)) return true;
    for (let at = 0; at < causes.length; at++) {
      if (agreesWithLimits(limits, at, val)) continue;
      this.#blocking[index] = at;
      return true;
    }
    return false;
  }

  #collect(index: number, end: number, draft: Draft): void {
    const from = this.#from[index] as number;
    this.#from[index] = end;
    // A reader that is not offered a number before the first one that it skips never has any to take.
    if (from >= end || from >= (this.#until[index] as number)) return;
    const reader = this.#readers[index] as CauseReader;
    const newest = end - 1;
    if (reader.isNewestOnly)
      collect(
        reader,
        draft,
        this.#vals[newest] as number,
        this.#onces[newest] as CauseEvidence,
        false,
      );
    else collectDeferred(reader, draft, this.#vals, this.#onces, from, end);
  }
}

/** The readers' deferred numbers, with this one; null where no reader defers any, or it is no number. */
export function deferInto(
  readers: CauseReader[],
  all: Deferred,
  { val, once }: GivenValue,
  draft: Draft,
): DeferredNumbers | null {
  let deferred = all.get(readers);
  if (typeof val !== 'number') {
    // `isAny` agrees with positions too.
    deferred?.end(draft);
    all.delete(readers);
    return null;
  }
  if (!deferred) {
    if (!readers.some(({ isLong, isNewestOnly }) => isLong || isNewestOnly)) return null;
    all.set(readers, (deferred = new DeferredNumbers(readers, draft)));
  }
  deferred.push(val, once);
  return deferred;
}

/** Whether the reader's event is in an episode. */
function isOpen({ event }: CauseReader, draft: Draft): boolean {
  return event.hasEpisodes && draft.get(event.index)?.isInEpisode === true;
}

/** How many more numbers cannot fire the reader's event: one of its causes lacks more outcomes than that. */
function numbersToDefer({ event, causes, isLong }: CauseReader, draft: Draft): number {
  if (!isLong) return 0;
  const collected = draft.get(event.index)?.causes;
  let most = 0;
  for (const index of causes) {
    const lacks =
      (event.causes[index] as CompiledCause).needed - (collected?.[index]?.matched ?? 0);
    if (lacks > most) most = lacks;
  }
  return most - 1;
}
