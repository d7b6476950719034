import { DomainError } from '../errors.ts';
import type { Account } from './request.ts';
import type { Route } from './route.ts';

/** Throws `forbidden` where a route is closed to the key with which it is called; a session opens all. */
export function checkRights(account: Account, { scope, isOfWholeAccount }: Route): void {
  const { key } = account;
  if (!key) return;
  if (scope === undefined)
    throw new DomainError('forbidden', 'No API key opens this: log in with the password.');
  checkScope(account, scope);
  if (isOfWholeAccount && key.labels.length > 0)
    throw new DomainError(
      'forbidden',
      'The API key is confined to devices with certain labels, and this is of the whole account.',
    );
}

/** Throws `forbidden` where a key lacks the scope. */
export function checkScope({ key }: Account, scope: NonNullable<Route['scope']>): void {
  if (key && !key.scopes.includes(scope))
    throw new DomainError('forbidden', `The API key lacks the scope ${scope}.`);
}

/** The labels to which whoever calls is confined; null: to none. */
export function labelsOf({ key }: Account): readonly string[] | null {
  return key && key.labels.length > 0 ? key.labels : null;
}
