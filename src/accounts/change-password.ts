import type { DoneBy } from '../audit/entry.ts';
import { insertEntry } from '../audit/audit.ts';
import type { RefusalLog } from '../audit/refusals.ts';
import type { Database } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import { lockAccount } from './delete-account.ts';
import { dropEmailChange } from './email-change-queries.ts';
import type { FairQueue } from './fair-queue.ts';
import type { Passwords } from './passwords.ts';
import { getAccount } from './find-account.ts';
import { updatePassword } from './queries.ts';
import { type LoginThrottle, turnOf, turnOfAccount } from './login-limits.ts';

export type ChangePasswordDeps = {
  db: Database;
  passwords: Passwords;
  throttle: LoginThrottle;
  /** A few at a time: the work inside the transaction may need a second connection. */
  inTurn: FairQueue;
  revokeSessions: (accountId: number) => Promise<void>;
  refusals: Pick<RefusalLog, 'note'>;
};

export type ChangePassword = {
  accountId: number;
  oldPassword: string;
  newPassword: string;
};

/**
 * Replaces the password and ends every session of the account. Throws `forbidden` when the old one is
 * wrong, and changes nothing (`unavailable`) while the session store is away.
 */
export async function changePassword(
  deps: ChangePasswordDeps,
  { accountId, oldPassword, newPassword }: ChangePassword,
  by: DoneBy,
): Promise<void> {
  const { db, passwords, throttle } = deps;
  const address = by.actor.address ?? '';
  const { email, passwordHash: oldHash } = await getAccount(db, accountId);
  const check = () => throttle.check(email, address);
  const turn = turnOf(email, address);
  if (!(await passwords.verify(oldHash, oldPassword, turn, check))) {
    await throttle.countFailure(email, address);
    deps.refusals.note(accountId, 'password-change-refused', by.actor);
    throw wrong();
  }
  const newHash = await passwords.hash(newPassword, turn);
  if (!(await setPassword(deps, { accountId, oldHash, newHash }, by))) throw wrong();
}

/** False when the password was changed by somebody else meanwhile. */
export async function setPassword(
  { db, inTurn, revokeSessions }: Omit<ChangePasswordDeps, 'passwords' | 'throttle' | 'refusals'>,
  change: { accountId: number; oldHash: string; newHash: string },
  by: DoneBy,
): Promise<boolean> {
  return inTurn(turnOfAccount(change.accountId, by.actor.address), () =>
    db.transaction(async (tx) => {
      await lockAccount(tx, change.accountId);
      if (!(await updatePassword(tx, change))) return false;
      // Who knew the old password may have asked for it.
      await dropEmailChange(tx, change.accountId);
      const entry = { kind: 'password-changed', ...by } as const;
      await insertEntry(tx, change.accountId, entry);
      await revokeSessions(change.accountId);
      return true;
    }),
  );
}

function wrong(): DomainError {
  return new DomainError('forbidden', 'The old password is wrong.');
}
