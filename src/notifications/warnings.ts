import type { Purpose, PurposePath } from '../contract/purpose.ts';
import { normalizePhoneNumber } from '../contract/values.ts';
import {
  listPhoneNumbers,
  listPhoneTexts,
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
  const push = findFirstPush(purposes, pathOf);
  const missing = new Map<string, Warning>();
  for (const { channel, called, path } of listPhoneTexts(purposes, pathOf)) {
    if (reachable.channels.includes(channel) || missing.has(channel)) continue;
    const what = `no ${called} provider is configured: ${called} are only written to the log`;
    missing.set(channel, warning('sms-log-only', path, what));
  }
  return [...(push === null ? [] : warningsOfPush(push, reachable)), ...missing.values()];
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

/** The place of the first action that sends a push; null if there is none. */
function findFirstPush(purposes: readonly Purpose[], pathOf: PurposePath): string | null {
  for (const [index, { states }] of purposes.entries())
    for (const [s, { events }] of states.entries())
      for (const [e, { actions }] of events.entries())
        if (actions.cloud?.sendPush)
          return `${pathOf(index)}/states/${s}/events/${e}/actions/cloud/sendPush`;
  return null;
}

/** Warns of numbers in purposes that nothing will be sent to, at their places. */
export function warnOfNumbers(
  purposes: readonly Purpose[],
  pathOf: PurposePath,
  isAllowedNumber: NumberRule,
): Warning[] {
  const warnings = warnOfNumberForms(purposes, pathOf);
  for (const { phoneNumber, called, path } of listPhoneNumbers(purposes, pathOf)) {
    if (warnings.length >= maxWarnings) break;
    const number = normalizePhoneNumber(phoneNumber);
    if (number === null || isAllowedNumber(number)) continue;
    const what = `no ${called} will be sent to ${phoneNumber}: the operator does not allow ${called} to numbers like this`;
    warnings.push(warning('number-refused', path, what));
  }
  return warnings;
}

/** The place of the first telephone number, for which an account needs permission; null if there is none. */
export function findFirstSms(purposes: readonly Purpose[], pathOf: PurposePath): string | null {
  for (const { path } of listPhoneTexts(purposes, pathOf)) return `${path}/phoneNumber`;
  return null;
}
