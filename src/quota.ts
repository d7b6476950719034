import { DomainError } from './errors.ts';

/** How much of a quota an account has: the operator may have given it another figure than the others. */
export type LimitOf = (accountId: number) => number | Promise<number>;

/** What is thrown where a total is used up; `what` names it for people: "event streams". */
export function quotaExceeded(
  quota: string,
  { limit, used, what }: { limit: number; used: number; what: string },
): DomainError {
  const message = `The account has ${used} ${what} of ${limit} it may have (${quota}).`;
  return new DomainError('quota-exceeded', message, { exceeded: { quota, limit, used } });
}
