import type { CompiledCause } from './compile-cause.ts';
import type { CauseEvidence } from './runtime.ts';
import { moveUp } from './long-window.ts';

/** Moves up long windows of an event's causes, in place. */
export function moveUpAll(
  windows: readonly (CauseEvidence | null)[],
  causes: CompiledCause[],
): void {
  for (let at = 0; at < windows.length; at++) {
    const window = windows[at];
    if (window && window.ahead > 0) moveUp(window, causes[at]?.windowLength ?? 1);
  }
}
