import type { Purpose } from '../contract/purpose.ts';

/**
 * How long a device may be silent where it stands when these purposes become current, in ms; null: without a limit. One
 * that never speaks has the service begin to evaluate it then, so that a device that is dead already is noticed.
 */
export function firstSilenceMs([first]: readonly Purpose[]): number | null {
  const states = first?.states.filter(({ stId, isGlobal }) => isGlobal || stId === first.initStId);
  const silences = (states ?? []).flatMap(({ events }) =>
    events.flatMap(({ causes }) => causes.flatMap(({ threshold }) => threshold?.noneForMs ?? [])),
  );
  return silences.length > 0 ? Math.min(...silences) : null;
}
