import type { Database } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import type { Passwords } from './passwords.ts';
import { type AccountRow, findAccountByEmail, insertLogin } from './queries.ts';
import type { Credentials } from './schema.ts';
import type { Throttle } from './throttle.ts';

export type Owner = { accountId: number; accountUuid: string };

export type LoginDeps = {
  db: Database;
  passwords: Passwords;
  throttle: Throttle;
  clock: () => number;
  revokeSession: (accountId: number, sessionId: string) => Promise<boolean>;
};

export type Login = Credentials & { address: string };

/**
 * Verifies the credentials, then begins a session with `start`. Throws `unauthenticated` in the same
 * words after the same time for an unknown address and a wrong password, or `too-many-requests`.
 */
export async function logIn<S extends { sessionId: string }>(
  deps: LoginDeps,
  login: Login,
  start: (owner: Owner) => Promise<S>,
): Promise<S & Owner> {
  const account = await verifyCredentials(deps, login);
  const { accountId, accountUuid } = account;
  const session = await start({ accountId, accountUuid });
  // The password may have been changed, and all sessions ended, while this one began.
  if (!(await insertLogin(deps.db, account, deps.clock()))) {
    await deps.revokeSession(accountId, session.sessionId);
    throw wrong();
  }
  return { ...session, accountId, accountUuid };
}

export async function verifyCredentials(
  { db, passwords, throttle }: Pick<LoginDeps, 'db' | 'passwords' | 'throttle'>,
  { email, password, address }: Login,
): Promise<AccountRow> {
  const check = () => throttle.check(email, address);
  await check();
  const account = await findAccountByEmail(db, email);
  // Checked again when the turn has come: those who waited together must not all be let through.
  if (!(await passwords.verify(account?.passwordHash ?? null, password, check)) || !account) {
    await throttle.countFailure(email, address);
    throw wrong();
  }
  await throttle.countSuccess(email, address);
  return account;
}

function wrong(): DomainError {
  return new DomainError('unauthenticated', 'The e-mail address or the password is wrong.');
}
