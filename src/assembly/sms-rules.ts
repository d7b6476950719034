import { maySendSms } from '../accounts/queries.ts';
import type { Config } from '../config.ts';
import type { Purpose } from '../core/purpose.ts';
import type { Sql } from '../db/sql.ts';
import type { Problem } from '../errors.ts';
import { createNumberRule } from '../outbox/phone-number.ts';
import { reasons } from '../outbox/reasons.ts';
import { findFirstSms, remarkNumbers, type PurposePath } from '../outbox/remark-sms.ts';

/** Who is registered by the operator needs no other permission. */
export function isSmsForAll({ accounts, notifications }: Config): boolean {
  return notifications.sms.forAll ?? !accounts.openRegistration;
}

export type SmsRemarks = {
  /** Numbers that no SMS will be sent to. */
  remarkNumbers: (purposes: Purpose[], pathOf: PurposePath) => Problem[];
  /** The same, and whether the account may send any. */
  remarkSms: (accountId: number, purposes: Purpose[], pathOf: PurposePath) => Promise<Problem[]>;
};

/** What is said about SMS where purposes are stored and installed. */
export function createSmsRemarks(db: Sql, config: Config): SmsRemarks {
  const isAllowed = createNumberRule(config.notifications.sms.allowedPrefixes);
  const isForAll = isSmsForAll(config);
  return {
    remarkNumbers: (purposes, pathOf) => remarkNumbers(purposes, pathOf, isAllowed),
    async remarkSms(accountId, purposes, pathOf) {
      const path = findFirstSms(purposes, pathOf);
      if (path === null) return [];
      const remarks = remarkNumbers(purposes, pathOf, isAllowed);
      if (isForAll || (await maySendSms(db, accountId))) return remarks;
      return [{ path, message: `no SMS will be sent: ${reasons['sms-not-allowed']}` }, ...remarks];
    },
  };
}
