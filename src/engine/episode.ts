import type { CompiledCause, LiveEvent } from './compile-event.ts';
import type { CauseEvidence, EventEvidence } from './runtime.ts';
import { addOutcome, copyOf, emptyWindow, moveUp } from './window.ts';

/** Which measurement agreed does not matter here. */
const anyAgreed = { val: 1, ts: 0 };

/**
 * Whether an outcome of one of its causes ends the event's episode: one that disagrees does. A lenient cause, which
 * holds with n of m outcomes, disagrees when more than m - n of its last m since the episode began did: these are
 * added up in `own.lately`, which is changed.
 */
export function endsEpisode(
  own: EventEvidence,
  event: LiveEvent,
  index: number,
  agrees: boolean,
): boolean {
  const cause = event.causes[index] as CompiledCause;
  if (cause.slack === 0) return !agrees;
  const before = own.lately?.[index] ?? null;
  const window = withOutcome(before, cause, agrees);
  own.lately = event.causes.map((_, at) => (at === index ? window : (own.lately?.[at] ?? null)));
  return window.of - window.matched > cause.slack;
}

export function endEpisode(own: EventEvidence): void {
  own.isInEpisode = false;
  own.lately = null;
}

function withOutcome(
  before: CauseEvidence | null,
  cause: CompiledCause,
  agrees: boolean,
): CauseEvidence {
  const window = before ? copyOf(before) : emptyWindow(undefined);
  addOutcome(window, cause, agrees ? anyAgreed : undefined);
  moveUp(window, cause.windowLength);
  window.agreed = undefined;
  return window;
}
