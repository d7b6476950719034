import { maySendSms } from '../accounts/may-send-sms.ts';
import { listChannels } from '../contacts/contacts.ts';
import type { Config } from '../config/config.ts';
import type { Purpose, PurposePath } from '../contract/purpose.ts';
import { warning, type Warning } from '../contract/warnings.ts';
import type { Sql } from '../db/sql.ts';
import { createNumberRule } from '../notifications/phone-number.ts';
import { countRecipients } from '../notifications/recipients.ts';
import { warnOfChannels } from '../notifications/warnings.ts';
import { findFirstSms, warnOfNumbers } from '../notifications/warn-of-numbers.ts';
import type { Shared } from './shared.ts';

/** Who is registered by the operator needs no other permission. */
export function isSmsForAll({ accounts, notifications }: Config): boolean {
  return notifications.sms.forAll ?? !accounts.openRegistration;
}

export type InstallWarnings = {
  /** Numbers that no SMS will be sent to. */
  warnOfNumbers: (purposes: Purpose[], pathOf: PurposePath) => Warning[];
  /** The same, whether the account may send any, and which channels lead to nobody. */
  warnOfSms: (accountId: number, purposes: Purpose[], pathOf: PurposePath) => Promise<Warning[]>;
};

/** What is said about SMS where purposes are stored and installed. */
export function createInstallWarnings({
  db,
  config,
  clock,
}: Pick<Shared, 'db' | 'config' | 'clock'>): InstallWarnings {
  const isAllowed = createNumberRule(config.notifications.sms.allowedPrefixes);
  const isForAll = isSmsForAll(config);
  return {
    warnOfNumbers: (purposes, pathOf) => warnOfNumbers(purposes, pathOf, isAllowed),
    async warnOfSms(accountId, purposes, pathOf) {
      const warnings = [
        ...(await warnOfChannelsOf({ db, nowTs: clock() }, accountId, purposes, pathOf)),
        ...warnOfNumbers(purposes, pathOf, isAllowed),
      ];
      const path = findFirstSms(purposes, pathOf);
      if (path === null) return warnings;
      if (isForAll || (await maySendSms(db, accountId))) return warnings;
      const what = 'no SMS will be sent: the operator has not allowed this account to send SMS';
      return [warning('sms-not-allowed', path, what), ...warnings];
    },
  };
}

async function warnOfChannelsOf(
  { db, nowTs }: { db: Sql; nowTs: number },
  accountId: number,
  purposes: Purpose[],
  pathOf: PurposePath,
): Promise<Warning[]> {
  if (!asksForPeople(purposes)) return [];
  const channels = await listChannels(db, nowTs);
  return warnOfChannels(purposes, pathOf, { channels, ...(await countRecipients(db, accountId)) });
}

const asksForPeople = (purposes: Purpose[]) =>
  purposes.some(({ states }) =>
    states.some(({ events }) =>
      events.some(({ actions }) => actions.cloud?.sendPush === true || actions.sms !== undefined),
    ),
  );
