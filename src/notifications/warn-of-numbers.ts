import { normalizePhoneNumber } from '../contract/values.ts';
import type { Purpose, PurposePath } from '../contract/purpose.ts';
import { listPhoneNumbers, listSms, warnOfNumberForms } from '../contract/warn-of-number-forms.ts';
import { maxWarnings, warning, type Warning } from '../contract/warnings.ts';
import type { NumberRule } from './phone-number.ts';

/** Numbers in purposes that no SMS will be sent to, at their places. */
export function warnOfNumbers(
  purposes: readonly Purpose[],
  pathOf: PurposePath,
  isAllowedNumber: NumberRule,
): Warning[] {
  const warnings = warnOfNumberForms(purposes, pathOf);
  for (const { phoneNumber, path } of listPhoneNumbers(purposes, pathOf)) {
    if (warnings.length >= maxWarnings) break;
    const number = normalizePhoneNumber(phoneNumber);
    if (number === null || isAllowedNumber(number)) continue;
    const what = `no SMS will be sent to ${phoneNumber}: the operator has SMS sent to no such number`;
    warnings.push(warning('number-refused', path, what));
  }
  return warnings;
}

/** Where the first SMS is that an account would have to be allowed to send; null where there is none. */
export function findFirstSms(purposes: readonly Purpose[], pathOf: PurposePath): string | null {
  for (const { path } of listSms(purposes, pathOf)) return path;
  return null;
}
