import type { Purpose } from '../contract/purpose.ts';

/**
 * How long a device may be silent where it stands when these purposes become current, in ms; null: without a limit. The
 * service begins to evaluate one that sends nothing after that time, so that a device that has failed before is noticed.
 */
export function firstSilenceMs([first]: readonly Purpose[]): number | null {
  const states = first?.states.filter(({ stId, isGlobal }) => isGlobal || stId === first.initStId);
  const silences = (states ?? []).flatMap(({ events }) =>
    events.flatMap(({ causes }) => causes.flatMap(({ threshold }) => threshold?.noneForMs ?? [])),
  );
  return silences.length > 0 ? Math.min(...silences) : null;
}
