import type { LiveEvent } from './compile-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import type { Draft } from './draft.ts';
import type { EventEvidence } from './runtime.ts';
import { addOutcome } from './window.ts';

/** Which measurement agreed does not matter here. */
const anyAgreed = { val: 1, ts: 0 };

/**
 * Whether an outcome of one of its causes ends the event's episode: one that disagrees does. A lenient cause, which
 * holds with n of m outcomes, disagrees when more than m - n of its last m since the episode began did: these are
 * kept in `own.lately`. `own` is the draft's.
 */
export function endsEpisode(
  draft: Draft,
  event: LiveEvent,
  own: EventEvidence,
  index: number,
  agrees: boolean,
): boolean {
  const cause = event.causes[index] as CompiledCause;
  if (cause.slack === 0) return !agrees;
  const window = draft.openLately(event, own, index);
  addOutcome(window, cause, agrees ? anyAgreed : undefined);
  window.agreed = undefined;
  return window.of - window.matched > cause.slack;
}
