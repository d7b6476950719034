import type { LiveEvent } from './compile-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import type { Draft } from './draft.ts';
import type { CauseEvidence, EventEvidence } from './runtime.ts';
import type { CauseTime } from './time-evidence.ts';
import { emptyWindow, windowOf } from './window.ts';
import { wordsOfWindow } from './words.ts';
import { moveUp } from './long-window.ts';
import { wordBits } from './words.ts';

/**
 * One of the event's causes, or a tick of it, is at `t`: outcomes that are older than `maxAgeMs` by the newest such time
 * are dropped, and runs whose newest one is. `own`, the draft's, is changed.
 */
export function dropOld(event: LiveEvent, draft: Draft, own: EventEvidence, t: number): void {
  if (!event.isAged || !own.time) return;
  const newestT = Math.max(own.time.newestT ?? t, t);
  const causes = own.time.causes.map((time, index) => {
    const cause = event.causes[index] as CompiledCause;
    const { maxAgeMs = null } = cause.time ?? {};
    if (!time || maxAgeMs === null) return time;
    const oldestT = newestT - maxAgeMs;
    const lately = time.lately?.filter((outcome) => outcome.t >= oldestT) ?? null;
    if (time.run && time.run.newestT < oldestT) {
      own.causes[index] = emptyWindow(own.causes[index]?.baseline);
      return { ...time, lately, run: null };
    }
    const kept = time.outcomeTs?.filter((outcomeT) => outcomeT >= oldestT) ?? null;
    if (!kept || kept.length === time.outcomeTs?.length) return { ...time, lately };
    const window = draft.openCause(event, own, index);
    own.causes[index] = newestOf(window, cause, kept.length);
    return { ...time, lately, outcomeTs: kept } satisfies CauseTime;
  });
  own.time = { newestT, causes };
}

/** A window of so many of its outcomes. */
function newestOf(window: CauseEvidence, cause: CompiledCause, count: number): CauseEvidence {
  moveUp(window, cause.windowLength);
  const given = window.words ?? [window.bits];
  const hasAgreed = (age: number) =>
    (((given[Math.floor(age / wordBits)] ?? 0) >> (age % wordBits)) & 1) === 1;
  const words = wordsOfWindow(cause.windowLength, (age) => age < count && hasAgreed(age));
  // A copy: what it gives may be shared.
  return { ...windowOf(cause, count, words, window) };
}
