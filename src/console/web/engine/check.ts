import './no-eval.ts';
import { Purpose } from '../../../contract/purpose.ts';
import {
  joinWarnings,
  type Warning,
  warnOfActions,
  warnOfNumberForms,
  warnOfUnknown,
  type WitnessStep,
} from '../../../contract/warnings.ts';
import { listWarnings, warnOfPolygons } from '../../../engine/warnings.ts';

/** What is wrong with a rule, and where; `code`: it is allowed, but probably a mistake (docs/warnings.md). */
export type Finding = {
  path: readonly (string | number)[];
  code: string | null;
  message: string;
  /** What shows it. */
  witness?: readonly WitnessStep[] | undefined;
};

/** `purpose`: the rule as the service reads it; null if it refuses it. */
export type Checked = { findings: readonly Finding[]; purpose: Purpose | null };

/**
 * Says what the service would say of a purpose that is stored: what it refuses; otherwise what it warns of. `explored`:
 * what trying it shows, once that is known.
 */
export function checkRule(value: unknown, explored: Warning[] = []): Checked {
  const read = Purpose.safeParse(value);
  if (!read.success) {
    const findings = read.error.issues.map(({ path, message }) => ({
      path: path as (string | number)[],
      code: null,
      message,
    }));
    return { findings, purpose: null };
  }
  const purposes = [read.data];
  const pathOf = () => '';
  const warnings = joinWarnings(
    warnOfUnknown(Purpose, value),
    listWarnings(purposes, undefined, pathOf),
    ...[warnOfPolygons, warnOfActions, warnOfNumberForms].map((warnOf) => warnOf(purposes, pathOf)),
    explored,
  );
  const findings = warnings.map(({ path, ...found }) => ({ ...found, path: stepsOf(path) }));
  return { findings, purpose: read.data };
}

/** A JSON Pointer as a path. */
function stepsOf(pointer: string): (string | number)[] {
  const steps = pointer.split('/').slice(1);
  return steps.map((step) =>
    /^\d+$/.test(step) ? Number(step) : step.replaceAll('~1', '/').replaceAll('~0', '~'),
  );
}
