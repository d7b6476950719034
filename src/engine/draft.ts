import type { LiveEvent } from './compile-event.ts';
import { noEventEvidence, noEvidence } from './runtime.ts';
import type { CauseEvidence, Evidence, EventEvidence } from './runtime.ts';
import { moveUpAll } from './move-up.ts';
import { copyOf, emptyWindow } from './window.ts';

/**
 * Evidence while it is worked on. What it began with is never changed: an event, and a cause of it, is
 * copied when it changes for the first time, and is the draft's own from then on.
 */
export class Draft {
  readonly #base: Evidence;
  #now: (EventEvidence | null)[] | null = null;
  /** Whose evidence is the draft's own; an event can be there twice. */
  readonly #opened: LiveEvent[] = [];

  /** Gets the events whose episodes end. */
  readonly #ended: LiveEvent[];

  constructor(base: Evidence, ended: LiveEvent[]) {
    this.#ended = ended;
    this.#base = base;
  }

  get(index: number): EventEvidence | null {
    return (this.#now ?? this.#base)[index] ?? null;
  }

  /** What it began with, which is not to be changed. */
  baseOf(index: number): EventEvidence | null {
    return this.#base[index] ?? null;
  }

  /** The event's evidence, to be changed. */
  open(event: LiveEvent): EventEvidence {
    const { index } = event;
    const before = this.get(index);
    if (before && before !== this.#base[index]) return before;
    const own = before ? copyOfEvent(before) : noEventEvidence(event);
    this.set(index, own);
    this.#opened.push(event);
    return own;
  }

  /** The evidence of one of its causes, to be changed. */
  openCause(event: LiveEvent, own: EventEvidence, index: number): CauseEvidence {
    const before = own.causes[index] ?? null;
    if (before && before !== this.#base[event.index]?.causes[index]) return before;
    return (own.causes[index] = before ? copyOf(before) : emptyWindow(undefined));
  }

  endEpisode(event: LiveEvent, own: EventEvidence): void {
    own.isInEpisode = false;
    own.lately = null;
    this.#ended.push(event);
  }

  /** The last outcomes of one of its causes in an episode, to be changed. */
  openLately(event: LiveEvent, own: EventEvidence, index: number): CauseEvidence {
    const lately = (own.lately ??= event.causes.map(() => null));
    const before = lately[index] ?? null;
    if (before && before !== this.#base[event.index]?.lately?.[index]) return before;
    return (lately[index] = before ? copyOf(before) : emptyWindow(undefined));
  }

  set(index: number, evidence: EventEvidence | null): void {
    const now = (this.#now ??= this.#base.slice());
    while (now.length < index) now.push(null);
    now[index] = evidence;
  }

  /** What it is now, but for what is still ahead of long windows. */
  get current(): Evidence {
    return this.#now ?? this.#base;
  }

  /** What it has become; the very object it began with if that is as it was. The draft is over then. */
  end(): Evidence {
    const [base, now] = [this.#base, this.#now];
    if (!now) return base;
    this.#moveUpWindows(now);
    while (now.length > 0 && now.at(-1) === null) now.pop();
    if (now.length === 0) return base.length === 0 ? base : noEvidence;
    return now.length === base.length && now.every((it, index) => it === base[index]) ? base : now;
  }

  #moveUpWindows(now: Evidence): void {
    for (const { index, causes } of this.#opened) {
      const evidence = now[index];
      moveUpAll(evidence?.causes ?? [], causes);
      moveUpAll(evidence?.lately ?? [], causes);
    }
  }
}

function copyOfEvent({ causes, holding, isInEpisode, lately, time }: EventEvidence): EventEvidence {
  return { causes: causes.slice(), holding, isInEpisode, lately: lately && lately.slice(), time };
}
