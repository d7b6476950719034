import type { Purpose, PurposePath } from '../contract/purpose.ts';
import { normalizePhoneNumber } from '../contract/values.ts';
import {
  listPhoneNumbers,
  listSms,
  maxWarnings,
  warning,
  type Warning,
  warnOfNumberForms,
} from '../contract/warnings.ts';
import type { NumberRule } from './recipients.ts';

/** How people can be reached at the time a profile is installed. */
type ReachablePeople = {
  /** The channels of all processes that deliver. */
  channels: readonly string[];
  /** How many the account has of each; for e-mail, confirmed addresses. */
  tokens: number;
  emails: number;
  unconfirmed: number;
  webhooks: number;
};

/** Warns of channels that purposes use and that reach nobody, at the first place that uses them. */
export function warnOfChannels(
  purposes: readonly Purpose[],
  pathOf: PurposePath,
  reachable: ReachablePeople,
): Warning[] {
  const { push, sms } = findFirst(purposes, pathOf);
  return [
    ...(push === null ? [] : warningsOfPush(push, reachable)),
    ...(sms === null || reachable.channels.includes('sms')
      ? []
      : [
          warning(
            'sms-log-only',
            sms,
            'no SMS provider is configured: SMS are only written to the log',
          ),
        ]),
  ];
}

function warningsOfPush(
  path: string,
  { channels, tokens, emails, unconfirmed, webhooks }: ReachablePeople,
): Warning[] {
  const warnings: Warning[] = [];
  const lacks = (channel: string) => !channels.includes(channel);
  if (tokens > 0 && lacks('push')) {
    const what = 'push is not configured: no push token receives a message';
    warnings.push(warning('push-not-configured', path, what));
  }
  if (emails + unconfirmed > 0 && lacks('email')) {
    const what = 'e-mail is not configured: no address receives a message';
    warnings.push(warning('mail-not-configured', path, what));
  }
  if (emails + tokens + webhooks > 0) return warnings;
  const nobody = 'nobody would be notified';
  return [
    ...warnings,
    unconfirmed > 0
      ? warning('not-confirmed', path, `${nobody}: no address is confirmed yet`)
      : warning('no-recipient', path, `${nobody}: the account has no contacts`),
  ];
}

function findFirst(purposes: readonly Purpose[], pathOf: PurposePath) {
  const first: { push: string | null; sms: string | null } = { push: null, sms: null };
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, { actions }] of events.entries()) {
        const path = `${pathOf(index)}/states/${s}/events/${e}/actions`;
        if (actions.cloud?.sendPush) first.push ??= `${path}/cloud/sendPush`;
        const { text, phoneNumber = [] } = actions.sms ?? {};
        if (text && phoneNumber.length > 0) first.sms ??= `${path}/sms`;
      }
  return first;
}

/** Warns of numbers in purposes that no SMS will be sent to, at their places. */
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
    const what = `no SMS will be sent to ${phoneNumber}: the operator does not allow SMS to numbers like this`;
    warnings.push(warning('number-refused', path, what));
  }
  return warnings;
}

/** The place of the first SMS, for which an account needs permission; null if there is none. */
export function findFirstSms(purposes: readonly Purpose[], pathOf: PurposePath): string | null {
  for (const { path } of listSms(purposes, pathOf)) return path;
  return null;
}
