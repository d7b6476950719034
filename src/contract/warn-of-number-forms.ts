import { normalizePhoneNumber } from './values.ts';
import type { Purpose, PurposePath } from './purpose.ts';
import { maxWarnings, warning, type Warning } from './warnings.ts';

/** What is no telephone number as E.164 has it: no provider can call it. */
export function warnOfNumberForms(purposes: readonly Purpose[], pathOf: PurposePath): Warning[] {
  const warnings: Warning[] = [];
  for (const { phoneNumber, path } of listPhoneNumbers(purposes, pathOf)) {
    if (warnings.length >= maxWarnings) break;
    if (normalizePhoneNumber(phoneNumber) !== null) continue;
    const what = `no SMS will be sent to ${phoneNumber}: this is no telephone number as E.164 has it`;
    warnings.push(warning('number-form', path, what));
  }
  return warnings;
}

/** The numbers that SMS are asked for to, at their places. */
export function* listPhoneNumbers(purposes: readonly Purpose[], pathOf: PurposePath) {
  for (const { phoneNumbers, path } of listSms(purposes, pathOf))
    for (const [n, phoneNumber] of phoneNumbers.entries())
      yield { phoneNumber, path: `${path}/${n}` };
}

/** Those SMS that have a text and a number. */
export function* listSms(purposes: readonly Purpose[], pathOf: PurposePath) {
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, { actions }] of events.entries()) {
        const { text, phoneNumber = [] } = actions.sms ?? {};
        const path = `${pathOf(index)}/states/${s}/events/${e}/actions/sms/phoneNumber`;
        if (text && phoneNumber.length > 0) yield { phoneNumbers: phoneNumber, path };
      }
}
