import type { z } from 'zod';
import type { Purpose } from '../contract/purpose.ts';
import { warnOfUnknown } from '../contract/unknown-members.ts';
import { warnOfActions } from '../contract/warn-of-actions.ts';
import { warnOfNumberForms } from '../contract/warn-of-number-forms.ts';
import { joinWarnings, type Warning } from '../contract/warnings.ts';
import { warnOfPolygons } from '../engine/warn-of-polygons.ts';
import { listWarningsInTurns } from '../engine/warnings-in-turns.ts';
import { nextTurn } from '../lib/in-turns.ts';

/** Of telephone numbers that no SMS will be sent to. */
export type WarnOfNumbers = (purposes: Purpose[], pathOf: () => string) => Warning[];

const pathOf = () => '';

/** What is refused where the caller is strict. */
export function warnOf(schema: z.ZodType, sent: unknown, purpose?: Purpose): Warning[] {
  const ofNumbers = purpose ? warnOfNumberForms([purpose], pathOf) : [];
  return joinWarnings(warnOfUnknown(schema, sent), ofNumbers);
}

/**
 * All warnings of a purpose. A gotoPuId may mean a purpose that it will be installed with: only its own are looked at here.
 */
export async function warnOfPurpose(
  purpose: Purpose,
  before: Warning[],
  warnOfNumbers: WarnOfNumbers,
): Promise<Warning[]> {
  const warnings = await listWarningsInTurns([purpose], undefined, pathOf, nextTurn);
  const ofParts = [warnOfPolygons, warnOfActions].map((warnOf) => warnOf([purpose], pathOf));
  return joinWarnings(before, warnings, ...ofParts, warnOfNumbers([purpose], pathOf));
}
