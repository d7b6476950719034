import type { CompiledCause } from './compile-cause.ts';
import type { Draft } from './draft.ts';
import { addOutcomes } from './long-window.ts';
import type { CauseReader } from './readers.ts';
import type { CauseEvidence, EventEvidence } from './runtime.ts';
import { isAllDisagreed } from './window.ts';
import { wordBits } from './words.ts';

/** What `collect` does with each of these numbers, none of which completes the event. */
export function collectDeferred(
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
