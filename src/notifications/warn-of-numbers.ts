import type { Purpose, PurposePath } from '../contract/purpose.ts';
import { warning, type Warning } from '../contract/warning.ts';
import { normalizePhoneNumber, type NumberRule } from './phone-number.ts';
import { reasons } from './reasons.ts';

// Whoever writes that many wrong numbers needs no list of all.
const maxWarnings = 100;

/** Numbers in purposes that no SMS will be sent to, at their places. */
export function warnOfNumbers(
  purposes: readonly Purpose[],
  pathOf: PurposePath,
  isAllowedNumber: NumberRule,
): Warning[] {
  const warnings: Warning[] = [];
  for (const { phoneNumbers, path } of listSms(purposes, pathOf)) {
    for (const [n, phoneNumber] of phoneNumbers.entries()) {
      if (warnings.length >= maxWarnings) return warnings;
      const number = normalizePhoneNumber(phoneNumber);
      if (number !== null && isAllowedNumber(number)) continue;
      const reason = number === null ? 'number-form' : 'number-refused';
      const what = `no SMS will be sent to ${phoneNumber}: ${reasons[reason]}`;
      warnings.push(warning(reason, `${path}/${n}`, what.replace(/\.$/, '')));
    }
  }
  return warnings;
}

/** Where the first SMS is that an account would have to be allowed to send; null where there is none. */
export function findFirstSms(purposes: readonly Purpose[], pathOf: PurposePath): string | null {
  for (const { path } of listSms(purposes, pathOf)) return path;
  return null;
}

function* listSms(purposes: readonly Purpose[], pathOf: PurposePath) {
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, { actions }] of events.entries()) {
        const { text, phoneNumber = [] } = actions.sms ?? {};
        const path = `${pathOf(index)}/states/${s}/events/${e}/actions/sms/phoneNumber`;
        if (text && phoneNumber.length > 0) yield { phoneNumbers: phoneNumber, path };
      }
}
