import type { DoneBy } from '../audit/entry.ts';
import { insertEntry } from '../audit/audit.ts';
import type { Database } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import { readLinkClaim } from '../lib/crypto.ts';
import type { AccountsDeps } from './deps.ts';
import { dropEmailChange } from './email-change-queries.ts';
import { lockAccount } from './delete-account.ts';
import { isResetToken, linkLifetimeMs } from './links.ts';
import { insertMail, queueLinkMail } from './mail-queries.ts';
import { findAccount } from './find-account.ts';
import type { AccountRow } from './find-account.ts';
import { updatePassword } from './queries.ts';
import { turnOf, turnOfAccount } from './login-limits.ts';

type LinkDeps = Pick<AccountsDeps, 'linkKeys' | 'hasMail'> & { db: Database };
type ResetDeps = LinkDeps &
  Pick<AccountsDeps, 'passwords' | 'throttle' | 'countLogin' | 'inTurn' | 'revokeSessions'>;

/** Throws `unavailable` where no mail can be sent. */
export function needMail({ hasMail }: Pick<LinkDeps, 'hasMail'>): void {
  if (hasMail) return;
  throw new DomainError(
    'unavailable',
    'This service sends no mail: the operator sets SMTP_URL, or makes a link with ' +
      '"npm run account -- reset-link EMAIL".',
    { retryAfterSeconds: 3_600 },
  );
}

/**
 * Queues a mail with a link to set a new password. Nobody has looked whether there is such an account when
 * this returns, so neither answer nor time tells it.
 */
export async function askForReset(
  deps: LinkDeps & Pick<AccountsDeps, 'countLogin' | 'countLinkMail'>,
  { email, address }: { email: string; address: string },
  ts: number,
): Promise<void> {
  needMail(deps);
  await deps.countLogin(email, address);
  await deps.countLinkMail('reset', address);
  const mail = { kind: 'reset', accountId: null, recipient: email, address, ts } as const;
  await deps.db.transaction((tx) => queueLinkMail(tx, mail));
}

/** The account that a link may set a password of, now; null where the link is not valid. Uses nothing up. */
export async function findResetOwner(
  { db, linkKeys }: Pick<LinkDeps, 'db' | 'linkKeys'>,
  token: string,
  nowMs: number,
): Promise<AccountRow | null> {
  const claim = readLinkClaim(token, nowMs, linkLifetimeMs);
  const account = claim && (await findAccount(db, { uuid: claim.uuid }));
  return account && isUsable(account, linkKeys, token) ? account : null;
}

/**
 * Sets a new password by a link, once, and ends all sessions. False where the link is not valid, or was
 * used meanwhile. Nothing changes (`unavailable`) while the session store is away.
 */
export async function resetPassword(
  deps: ResetDeps,
  { token, password, address }: { token: string; password: string; address: string },
  by: DoneBy,
): Promise<boolean> {
  // Before anything is looked up: tokens can be guessed at as passwords can.
  await deps.countLogin('', address);
  const owner = await findResetOwner(deps, token, by.ts);
  if (!owner) return false;
  const { accountId, email } = owner;
  const newHash = await deps.passwords.hash(password, turnOf(email, address));
  const isSet = await deps.inTurn(turnOfAccount(accountId, address), () =>
    deps.db.transaction(async (tx) => {
      await lockAccount(tx, accountId);
      // As it is now: another link may have been used while this password was hashed.
      const account = await findAccount(tx, { accountId });
      if (!account || !isUsable(account, deps.linkKeys, token)) return false;
      await updatePassword(tx, { accountId, oldHash: account.passwordHash, newHash });
      await dropEmailChange(tx, accountId);
      await insertEntry(tx, accountId, { kind: 'password-reset', ...by });
      const told = {
        kind: 'password-reset',
        accountId,
        recipient: email,
        address,
        ts: by.ts,
      } as const;
      if (deps.hasMail) await insertMail(tx, told);
      await deps.revokeSessions(accountId);
      return true;
    }),
  );
  // Who forgot a password has tried some.
  if (isSet) await deps.throttle.countSuccess(email, address);
  return isSet;
}

function isUsable(account: AccountRow, linkKeys: readonly Buffer[], token: string): boolean {
  return !account.isDisabled && isResetToken(linkKeys, account, token);
}
