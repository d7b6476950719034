import type { Actor } from '../audit/entry.ts';
import type { RefusalLog } from '../audit/refusals.ts';
import type { Database } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import { type AccountRow, findAccountByEmail } from './find-account.ts';
import { type LoginThrottle, turnOf } from './login-limits.ts';
import { insertLogin } from './login-queries.ts';
import type { CountLogin } from './login-rates.ts';
import type { Passwords } from './passwords.ts';
import { updatePassword } from './queries.ts';
import type { AccountLogin } from './schema.ts';

/** Characters of it that are kept: browsers' have about 120. */
const maxUserAgent = 256;

export type LoginOwner = { accountId: number; accountUuid: string };

export type AccountLoginDeps = {
  db: Database;
  passwords: Passwords;
  throttle: LoginThrottle;
  countLogin: CountLogin;
  refusals: Pick<RefusalLog, 'note'>;
  revokeSession: (accountId: number, sessionId: string) => Promise<boolean>;
};

export type VerifyDeps = Pick<
  AccountLoginDeps,
  'db' | 'passwords' | 'throttle' | 'countLogin' | 'refusals'
>;

export type LoginAttempt = AccountLogin & {
  address: string;
  /** What the program calls itself; '' where it does not. */
  userAgent: string;
  /** When the request arrived, ms. */
  receivedTs: number;
  /** Asked before the password is hashed: a client that has left needs no answer. */
  hasGone?: () => boolean;
};

/**
 * Verifies the credentials, then begins a session with `start`. Throws `unauthenticated` in the same
 * words after the same time for an unknown address and a wrong password, or `too-many-requests`;
 * `account-disabled` where the password is right.
 */
export async function logIn<S extends { sessionId: string }>(
  deps: AccountLoginDeps,
  login: LoginAttempt,
  start: (owner: LoginOwner) => Promise<S>,
): Promise<S & LoginOwner> {
  const account = await verifyCredentials(deps, login);
  const { accountId, accountUuid } = account;
  const session = await start({ accountId, accountUuid });
  // The password may have been changed, and all sessions ended, while this one began.
  const { sessionId } = session;
  const { address, receivedTs: ts } = login;
  const userAgent = login.userAgent.slice(0, maxUserAgent);
  if (!(await insertLogin(deps.db, account, { ts, sessionId, address, userAgent }))) {
    await deps.revokeSession(accountId, sessionId);
    throw wrong();
  }
  return { ...session, accountId, accountUuid };
}

export async function verifyCredentials(
  { db, passwords, throttle, countLogin, refusals }: VerifyDeps,
  login: Omit<LoginAttempt, 'receivedTs' | 'userAgent'>,
): Promise<AccountRow> {
  const { password, address } = login;
  const email = login.email.slice(0, 1_024);
  const check = () => throttle.check(email, address);
  const guard = async () => {
    if (login.hasGone?.()) throw new DomainError('unauthenticated', 'The client has gone.');
    await check();
  };
  await check();
  await countLogin(email, address);
  // For every account alike, so that the time of the answer tells nothing.
  if (isTooLong(login)) throw wrong();
  const account = await findAccountByEmail(db, email);
  const hash = account?.passwordHash ?? null;
  // Checked again before the hash: logins that were queued together must not all pass.
  const turn = turnOf(email, address);
  const match = await passwords.verify(hash, password, turn, guard);
  if (match === null || !account) {
    await throttle.countFailure(email, address);
    if (account) refusals.note(account.accountId, 'login-refused', nobodyAt(address));
    throw wrong();
  }
  await throttle.countSuccess(email, address);
  if (account.isDisabled) {
    refusals.note(account.accountId, 'login-while-disabled', nobodyAt(address));
    throw new DomainError('account-disabled', 'The operator has disabled this account.');
  }
  if (match === 'normalized') return account;
  // From now on it is known however it is typed.
  const { accountId, passwordHash: oldHash } = account;
  const newHash = await passwords.hash(password, turn);
  const isKept = await updatePassword(db, { accountId, oldHash, newHash });
  return isKept ? { ...account, passwordHash: newHash } : account;
}

function nobodyAt(address: string): Actor {
  return { by: 'nobody', sessionId: null, address };
}

/** Longer than any address or password is: refused before it is queued. */
function isTooLong({ email, password }: AccountLogin): boolean {
  return email.length > 1_024 || password.length > 1_024;
}

function wrong(): DomainError {
  return new DomainError('unauthenticated', 'The e-mail address or the password is wrong.');
}
