import { isAtLeast, listPhoneMessages, type Severity, severityOf } from '../contract/actions.ts';
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
  /** What contacts that can be reached are notified of, at least. */
  severities: readonly Severity[];
};

/** Warns of channels that purposes use and that reach nobody, at the first place that uses them. */
function warnOfChannels(
  purposes: readonly Purpose[],
  pathOf: PurposePath,
  reachable: ReachablePeople,
): Warning[] {
  const pushes = listPushes(purposes, pathOf);
  const [push] = pushes;
  const missing = new Map<string, Warning>();
  for (const { channel, called, path } of listPhoneTexts(purposes, pathOf)) {
    if (reachable.channels.includes(channel) || missing.has(channel)) continue;
    const what = `no ${called} provider is configured: ${called} are only written to the log`;
    missing.set(channel, warning('sms-log-only', path, what));
  }
  const ofPush = push ? warningsOfPush(push.path, reachable) : [];
  return [...ofPush, ...warnOfMild(pushes, reachable), ...missing.values()];
}

/** Warns of what nobody is notified of because each contact asks for something worse: once for each severity. */
function warnOfMild(pushes: readonly Push[], { tokens, severities }: ReachablePeople): Warning[] {
  if (tokens > 0 || severities.length === 0) return [];
  const least = severities.reduce((one, other) => (isAtLeast(one, other) ? other : one));
  const mild = pushes.filter(({ severity }) => !isAtLeast(severity, least));
  return [...Map.groupBy(mild, ({ severity }) => severity).values()].flatMap(([first]) => {
    if (!first) return [];
    const what = `nobody would be notified: its severity is ${first.severity}, and each contact asks for ${least} at least`;
    return [warning('too-mild', first.path, what)];
  });
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

type Push = { path: string; severity: Severity };

/** The actions that notify contacts, with their places. */
function listPushes(purposes: readonly Purpose[], pathOf: PurposePath): Push[] {
  return purposes.flatMap(({ states }, index) =>
    states.flatMap(({ events }, s) =>
      events.flatMap(({ actions }, e) => {
        const path = `${pathOf(index)}/states/${s}/events/${e}/actions/cloud/sendPush`;
        return actions.cloud?.sendPush ? [{ path, severity: severityOf(actions) }] : [];
      }),
    ),
  );
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
