import type { CompiledCause, LiveEvent } from './compile-event.ts';
import type { Reader } from './compile.ts';
import type { Draft } from './draft.ts';
import { judge } from './judge.ts';
import type { Measurement } from './measurement.ts';
import type { Agreed, CauseEvidence, EventEvidence } from './runtime.ts';
import { addOutcome, emptyWindow, isAllDisagreed } from './window.ts';

/**
 * Adds a measurement to what the reading causes of an event have collected; `agreed` is its form where it
 * agrees. Gives what the event has then, or null where that is as it was: none of them evaluates such a
 * value, or it says what the ones before said.
 */
export function collect(
  { event, causes: indexes }: Reader,
  draft: Draft,
  val: Measurement['val'],
  agreed: Agreed,
): EventEvidence | null {
  let before = draft.get(event.index);
  let own: EventEvidence | null = null;
  let ended = false;
  for (const index of indexes) {
    const cause = event.causes[index];
    if (!cause) continue;
    const collected = before?.causes[index] ?? null;
    const agrees = judge(cause, val, collected?.baseline);
    if (agrees === null) continue;
    if (!agrees) {
      ended = true;
      if (collected && isAllDisagreed(collected, cause) && !beginsAt(val, cause, collected))
        continue;
    }
    before = own ??= draft.open(event);
    const window = draft.openCause(event, own, index);
    const held = window.matched >= cause.needed;
    if (typeof val === 'number' && beginsAt(val, cause, window)) window.baseline = val + 0;
    addOutcome(window, cause, agrees ? agreed : undefined);
    const holds = window.matched >= cause.needed;
    if (holds !== held) own.holding += holds ? 1 : -1;
  }
  // Of an episode that has rung all outcomes agreed: one that ends it is a new one.
  if (own && ended) own.rung = false;
  return own;
}

/** Whether a measurement fires an event that is spent at once, and for which nothing is collected. */
export function isSpent({ event }: Reader, draft: Draft, val: Measurement['val']): boolean {
  if (!event.isSpentAtOnce || draft.get(event.index) !== null) return false;
  for (const cause of event.causes) if (judge(cause, val, undefined) !== true) return false;
  return true;
}

/** Whether this is the first value that a relative cause evaluates. */
function beginsAt(
  val: Measurement['val'],
  { relative }: CompiledCause,
  { baseline }: CauseEvidence,
) {
  return relative && baseline === undefined && typeof val === 'number';
}

/** Whether every cause of the event holds. An event without causes never does. */
export function isComplete({ causes }: LiveEvent, { holding }: EventEvidence): boolean {
  return causes.length > 0 && holding === causes.length;
}

/** What is left after a firing: empty windows, the baselines, and that the episode has rung. */
export function useUp(event: LiveEvent, evidence: EventEvidence): EventEvidence | null {
  const rung = event.rings && !event.ringsAlways;
  let isEmpty = !rung;
  const causes = evidence.causes.map((collected) => {
    if (collected?.baseline === undefined) return null;
    isEmpty = false;
    return emptyWindow(collected.baseline);
  });
  return isEmpty ? null : { causes, holding: 0, rung };
}
