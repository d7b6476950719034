import { doneBy } from '../audit/entry.ts';
import { labelsOf } from '../http/rights.ts';
import type { Account, RequestInfo } from '../http/request.ts';
import { TimestampResponse } from '../http/schema.ts';
import type { Act } from './act-on.ts';

/** What the routes have in common by which an account does something about its alarms. */
export const actRoute = {
  scope: 'alarms:write',
  tag: 'Alarms',
  auth: 'account',
  errors: [404],
  response: TimestampResponse,
} as const;

/** Who does it, and within which devices. */
export const actOf = (account: Account, request: RequestInfo): Act => ({
  accountId: account.accountId,
  within: labelsOf(account),
  by: doneBy(account, request),
});
