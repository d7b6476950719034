import type { DoneBy } from '../audit/entry.ts';
import { insertEntry } from '../audit/audit.ts';
import { DomainError } from '../errors.ts';
import { kindOf } from '../db/errors.ts';
import { lockAccount } from './delete-account.ts';
import type { AccountsDeps } from './deps.ts';
import {
  findEmailChange,
  isEmailTaken,
  saveEmailChange,
  takeEmailChange,
  updateEmail,
  type EmailChangeRow,
} from './email-change-queries.ts';
import { findAccount } from './find-account.ts';
import { needMail } from './forgotten-password.ts';
import { linkLifetimeMs, readEmailToken } from './links.ts';
import { insertMail, mayAskForEmail, queueLinkMail } from './mail-queries.ts';
import { getAccount } from './find-account.ts';
import { turnOf, turnOfAccount } from './login-limits.ts';

/**
 * Sends a link to the new address; nothing changes before it is confirmed there. Throws `forbidden` for a
 * wrong password. Whether another account has the address is not said: no mail is sent then.
 */
export async function askForEmailChange(
  deps: AccountsDeps,
  { accountId, password, email }: { accountId: number; password: string; email: string },
  by: DoneBy,
): Promise<void> {
  needMail(deps);
  const address = by.actor.address ?? '';
  const account = await getAccount(deps.db, accountId);
  const turn = turnOf(account.email, address);
  const check = () => deps.throttle.check(account.email, address);
  if (!(await deps.passwords.verify(account.passwordHash, password, turn, check))) {
    await deps.throttle.countFailure(account.email, address);
    deps.refusals.note(accountId, 'email-change-refused', by.actor);
    throw new DomainError('forbidden', 'The password is wrong.');
  }
  await deps.countLinkMail('confirm-email', address);
  const mail = { kind: 'confirm-email', accountId, recipient: email, address, ts: by.ts } as const;
  await deps.db.transaction(async (tx) => {
    await lockAccount(tx, accountId);
    if (!(await mayAskForEmail(tx, accountId, by.ts))) throw tooManyAddresses();
    await saveEmailChange(tx, { accountId, email, expiresTs: by.ts + linkLifetimeMs });
    await queueLinkMail(tx, mail);
    await insertEntry(tx, accountId, { kind: 'email-change-asked', ...by, details: { email } });
  });
}

function tooManyAddresses(): DomainError {
  return new DomainError('too-many-requests', 'Too many addresses were asked for: wait an hour.', {
    retryAfterSeconds: 3_600,
  });
}

/** The change that a link is for; null where the link is not valid. Uses nothing up. */
export async function findLinkedChange(
  { db, linkKeys }: Pick<AccountsDeps, 'db' | 'linkKeys'>,
  token: string,
  nowMs: number,
): Promise<EmailChangeRow | null> {
  const uuid = readEmailToken(linkKeys, token, nowMs);
  return uuid === null ? null : findEmailChange(db, { uuid });
}

/**
 * Gives the account its new address, once, ends all its sessions and tells the old address. Null where the
 * link is not valid, or another account has the address by now.
 */
export async function confirmEmailChange(
  deps: Pick<AccountsDeps, 'db' | 'linkKeys' | 'inTurn' | 'revokeSessions'>,
  token: string,
  by: DoneBy,
): Promise<string | null> {
  const change = await findLinkedChange(deps, token, by.ts);
  if (!change) return null;
  const { accountId, email, uuid } = change;
  const confirm = () =>
    deps.db.transaction(async (tx) => {
      await lockAccount(tx, accountId);
      const account = await findAccount(tx, { accountId });
      if (!account || account.isDisabled || !(await takeEmailChange(tx, uuid))) return null;
      if (await isEmailTaken(tx, accountId, email)) return null;
      await updateEmail(tx, accountId, email);
      const details = { email, before: account.email };
      await insertEntry(tx, accountId, { kind: 'email-changed', ...by, details });
      const { address } = by.actor;
      const told = { kind: 'email-changed', accountId, recipient: account.email } as const;
      await insertMail(tx, { ...told, address, ts: by.ts });
      await deps.revokeSessions(accountId);
      return email;
    });
  const turn = turnOfAccount(accountId, by.actor.address);
  return deps.inTurn(turn, confirm).catch((error: unknown) => {
    // Somebody registered with it at this moment.
    if (kindOf(error) === 'unique') return null;
    throw error;
  });
}
