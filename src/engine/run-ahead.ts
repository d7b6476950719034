import type { CompiledCause } from './compile-event.ts';
import type { CauseReader } from './compile.ts';
import { collect } from './collect-evidence.ts';
import type { Draft } from './draft.ts';
import type { CauseEvidence, EventEvidence } from './runtime.ts';
import { agreesWithLimits } from './thresholds.ts';
import { addOutcomes, isAllDisagreed } from './window.ts';
import { wordBits } from './word-bits.ts';

/** Fewer measurements are collected one by one. */
const leastAhead = 8;

/**
 * The numbers of one sense that its readers have met, so that those whose event does not fire take them
 * together, later. Where windows are long a cause that lacks 500 outcomes lacks some of them for the next 499
 * measurements: to go through these cause by cause takes a tenth of what each alone does. Where they have
 * one outcome, one cause that disagrees says that the event does not fire, and the next number is all
 * that counts.
 */
export class RunAhead {
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
  isAhead(index: number, draft: Draft): boolean {
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
    const ahead = outcomesAhead(reader, draft);
    this.#until[index] = ahead < leastAhead ? next : next + ahead;
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
    else collectRun(reader, draft, this.#vals, this.#onces, from, end);
  }
}

/** Whether the reader's event is in an episode. */
function isOpen({ event }: CauseReader, draft: Draft): boolean {
  return event.hasEpisodes && draft.get(event.index)?.isInEpisode === true;
}

/** How many more numbers cannot fire the reader's event: one of its causes lacks more outcomes than that. */
function outcomesAhead({ event, causes, isLong }: CauseReader, draft: Draft): number {
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

/** What `collect` does with each of these numbers, none of which completes the event. */
function collectRun(
  { event, causes: indexes, limits }: CauseReader,
  draft: Draft,
  vals: number[],
  onces: CauseEvidence[],
  from: number,
  end: number,
): void {
  if (!limits) return;
  let own: EventEvidence | null = null;
  for (let at = 0; at < indexes.length; at++) {
    const index = indexes[at] as number;
    const cause = event.causes[index] as CompiledCause;
    const above = limits[3 * at] as number;
    const below = limits[3 * at + 1] as number;
    const meets = limits[3 * at + 2] === 1 ? 0 : 1;
    const before = (own ?? draft.get(event.index))?.causes[index] ?? null;
    const held = (before?.matched ?? 0) >= cause.needed;
    let window: CauseEvidence | null = null;
    for (let first = from; first < end;) {
      const room = wordBits - (((window ?? before)?.ahead ?? 0) % wordBits);
      const next = Math.min(end, first + room);
      let outcomes = 0;
      for (let n = first; n < next; n++) {
        const val = vals[n] as number;
        outcomes = (outcomes << 1) | (val > above && val < below ? meets : 1 - meets);
      }
      const count = next - first;
      first = next;
      if (!window) {
        if (outcomes === 0 && before && isAllDisagreed(before, cause)) continue;
        own ??= draft.open(event);
        window = draft.openCause(event, own, index);
      }
      // The newest one that agreed is the lowest bit.
      const newest = outcomes === 0 ? undefined : onces[next - 1 - lowestOne(outcomes)]?.agreed;
      addOutcomes(window, cause, outcomes, count, newest);
    }
    if (window && own) own.holding += Number(window.matched >= cause.needed) - Number(held);
  }
}

const lowestOne = (bits: number): number => 31 - Math.clz32(bits & -bits);
