import { listPhoneMessages } from '../contract/actions.ts';
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
import type { Sql } from '../db/sql.ts';
import type { Clock } from '../lib/clock-readings.ts';
import { countRecipients, listAnnounced, maySendSms, type NumberRule } from './recipients.ts';

export type InstallWarnings = {
  /** Warns of numbers to which no SMS will be sent. */
  warnOfNumbers: (purposes: Purpose[], pathOf: PurposePath) => Warning[];
  /** The same, and whether the account may send SMS at all, and which channels have no recipient. */
  warnOfSms: (accountId: number, purposes: Purpose[], pathOf: PurposePath) => Promise<Warning[]>;
};

/** The warnings about notifications when purposes are stored and installed. */
export function createInstallWarnings({
  db,
  clock,
  isAllowedNumber,
  isSmsForAll,
}: {
  db: Sql;
  clock: Clock;
  isAllowedNumber: NumberRule;
  /** Accounts need no permission from the operator to send SMS. */
  isSmsForAll: boolean;
}): InstallWarnings {
  return {
    warnOfNumbers: (purposes, pathOf) => warnOfNumbers(purposes, pathOf, isAllowedNumber),
    async warnOfSms(accountId, purposes, pathOf) {
      const warnings = warnOfNumbers(purposes, pathOf, isAllowedNumber);
      if (purposes.some(asksForPeople)) {
        const channels = await listAnnounced(db, clock());
        const reachable = { channels, ...(await countRecipients(db, accountId)) };
        warnings.unshift(...warnOfChannels(purposes, pathOf, reachable));
      }
      const path = findFirstSms(purposes, pathOf);
      if (path === null || isSmsForAll || (await maySendSms(db, accountId))) return warnings;
      const what = 'no SMS will be sent: the operator has not allowed this account to send SMS';
      return [warning('sms-not-allowed', path, what), ...warnings];
    },
  };
}

const asksForPeople = ({ states }: Purpose) =>
  states.some(({ events }) =>
    events.some(
      ({ actions }) => actions.cloud?.sendPush === true || listPhoneMessages(actions).length > 0,
    ),
  );

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
function warnOfChannels(
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
function warnOfNumbers(
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
function findFirstSms(purposes: readonly Purpose[], pathOf: PurposePath): string | null {
  for (const { path } of listPhoneTexts(purposes, pathOf)) return `${path}/phoneNumber`;
  return null;
}
