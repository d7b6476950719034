import { type Actor, type DoneBy, insertEntry } from '../audit/audit.ts';
import type { RefusalLog } from '../audit/refusals.ts';
import type { Database } from '../db/database.ts';
import { kindOf } from '../db/errors.ts';
import { giveWay, haltIngest } from '../db/locks.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { readLinkClaim } from '../lib/crypto.ts';
import type { Asker } from '../lib/fair-queue.ts';
import { lockUsage } from '../quotas/quotas.ts';
import type { Sessions } from '../sessions/sessions.ts';
import {
  type CountLinkMail,
  type CountLogin,
  type CountRegistration,
  type LoginThrottle,
  askerOf,
  askerOfAccount,
} from './login-limits.ts';
import { isResetToken, linkLifetimeMs, readEmailToken } from './mailer.ts';
import type { RunFairly, Passwords } from './passwords.ts';
import {
  type AccountRow,
  dropEmailChange,
  type EmailChangeRow,
  findAccount,
  findAccountByEmail,
  findEmailChange,
  getAccount,
  insertAccount,
  insertAccountEvent,
  insertLogin,
  insertMail,
  isEmailTaken,
  mayAskForEmail,
  queueLinkMail,
  saveEmailChange,
  takeEmailChange,
  updateEmail,
  updatePassword,
} from './queries.ts';
import type { AccountLogin, NewCredentials } from './schema.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/**
 * Specification 4.2, Register New Account. `maySendSms`: the account may send SMS; set when the operator creates it.
 * Throws `conflict` if the e-mail address is taken.
 */
export async function registerAccount(
  { db, passwords }: { db: Database; passwords: Passwords },
  { email, password, address }: NewCredentials & { address: string },
  { actor, ts, maySendSms }: DoneBy & { maySendSms?: boolean },
): Promise<AccountRow> {
  const passwordHash = await passwords.hash(password, askerOf(email, address));
  return db.transaction(async (tx) => {
    const account = await insertAccount(tx, { email, passwordHash, maySendSms });
    if (!account)
      throw new DomainError('conflict', 'An account with this e-mail address already exists.');
    await insertAccountEvent(tx, account.accountId, 'register', ts);
    await insertEntry(tx, account.accountId, { kind: 'registered', actor, ts });
    return account;
  });
}

/**
 * Sends a link to the new address; nothing changes until it is confirmed there. Throws `forbidden` if the password is
 * wrong. The caller does not learn whether another account has the address: in that case no mail is sent.
 */
export async function askForEmailChange(
  deps: AccountsDeps,
  { accountId, password, email }: { accountId: number; password: string; email: string },
  by: DoneBy,
): Promise<void> {
  needMail(deps);
  const address = by.actor.address ?? '';
  const account = await getAccount(deps.db, accountId);
  const asker = askerOf(account.email, address);
  const check = () => deps.throttle.check(account.email, address);
  if (!(await deps.passwords.verify(account.passwordHash, password, asker, check))) {
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
  return new DomainError(
    'too-many-requests',
    'Too many e-mail address changes were requested: wait an hour.',
    {
      retryAfterSeconds: 3_600,
    },
  );
}

/** The change that a link confirms; null if the link is not valid. Does not use the link up. */
export async function findLinkedChange(
  { db, linkKeys }: Pick<AccountsDeps, 'db' | 'linkKeys'>,
  token: string,
  nowTs: WallMs,
): Promise<EmailChangeRow | null> {
  const uuid = readEmailToken(linkKeys, token, nowTs);
  return uuid === null ? null : findEmailChange(db, { uuid });
}

/**
 * Gives the account its new address, once, ends all its sessions and informs the old address. Null if the link is not
 * valid, or if another account has taken the address since.
 */
export async function confirmEmailChange(
  deps: Pick<AccountsDeps, 'db' | 'linkKeys' | 'runFairly' | 'revokeSessions'>,
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
  const asker = askerOfAccount(accountId, by.actor.address);
  return deps.runFairly(asker, confirm).catch((error: unknown) => {
    // Somebody registered with the address at the same moment.
    if (kindOf(error) === 'unique') return null;
    throw error;
  });
}

type LinkDeps = Pick<AccountsDeps, 'linkKeys' | 'hasMail'> & { db: Database };

/** Throws `unavailable` if no mail can be sent. */
function needMail({ hasMail }: Pick<LinkDeps, 'hasMail'>): void {
  if (hasMail) return;
  throw new DomainError(
    'unavailable',
    'This service cannot send e-mail: the operator sets SMTP_URL, or creates a link with "npm ' +
      'run account -- reset-link EMAIL".',
    { retryAfterSeconds: 3_600 },
  );
}

/**
 * Queues a mail with a link to set a new password. Nothing looks up the account before this returns, so neither the
 * answer nor its time reveals whether it exists.
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

/** The account whose password a link may set now; null if the link is not valid. Does not use the link up. */
export async function findResetOwner(
  { db, linkKeys }: Pick<LinkDeps, 'db' | 'linkKeys'>,
  token: string,
  nowTs: WallMs,
): Promise<AccountRow | null> {
  const claim = readLinkClaim(token, nowTs, linkLifetimeMs);
  const account = claim && (await findAccount(db, { uuid: claim.uuid }));
  return account && isUsable(account, linkKeys, token) ? account : null;
}

/**
 * Sets a new password by a link, once, and ends all sessions. False if the link is not valid, or was used meanwhile.
 * Throws `unavailable` and changes nothing while the session store is unreachable.
 */
export async function resetPassword(
  deps: LinkDeps &
    Pick<AccountsDeps, 'passwords' | 'throttle' | 'countLogin' | 'runFairly' | 'revokeSessions'>,
  { token, password, address }: { token: string; password: string; address: string },
  by: DoneBy,
): Promise<boolean> {
  // Before any look-up: tokens can be guessed just as passwords can.
  await deps.countLogin('', address);
  const owner = await findResetOwner(deps, token, by.ts);
  if (!owner) return false;
  const { accountId, email } = owner;
  const newHash = await deps.passwords.hash(password, askerOf(email, address));
  const isSet = await deps.runFairly(askerOfAccount(accountId, address), () =>
    deps.db.transaction(async (tx) => {
      await lockAccount(tx, accountId);
      // Read again: another link may have been used while this password was hashed.
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
  // Clears the failed attempts: people who forgot their password have tried some.
  if (isSet) await deps.throttle.countSuccess(email, address);
  return isSet;
}

function isUsable(account: AccountRow, linkKeys: readonly Buffer[], token: string): boolean {
  return !account.isDisabled && isResetToken(linkKeys, account, token);
}

type DeleteAccountDeps = {
  db: Database;
  /** Runs a few at a time, with fair shares: the work inside the transaction may need a second connection. */
  runFairly: RunFairly;
  revokeSessions: (accountId: number) => Promise<void>;
  /** Deletes data about people, as much as one transaction may. */
  forgetPersons: (tx: Sql, accountId: number) => Promise<void>;
  /** Called after the commit: informs every process, and starts deleting what belonged to the account. */
  onAccountRemoved: (accountId: number) => void;
};

/**
 * Specification 4.2, Delete Account: deletes everything that belongs to the account. The commit marks the account: from
 * then on nobody can find it or anything of it, and its address is free. Its sessions end before that, so that no token
 * outlives it; while their store is unreachable nothing happens at all (`unavailable`). The rows are then deleted in
 * small batches, however many there are (`history/clear-removed.ts`). Throws `unauthenticated` if the account was
 * removed before.
 */
export async function deleteAccount(
  deps: DeleteAccountDeps,
  accountId: number,
  asker: Asker,
): Promise<void> {
  // Starts over if it had to give way: ingest may be waiting for rows that were deleted here.
  await deps.runFairly(asker, () =>
    giveWay((waitMs) =>
      deps.db.transaction(async (tx) => {
        // Inserts for the account wait for this lock, and then find the account gone.
        await lockUsage(tx, accountId);
        await lockAccount(tx, accountId);
        await deps.revokeSessions(accountId);
        await deps.forgetPersons(tx, accountId);
        await haltIngest(tx, waitMs);
        await markAccount(tx, accountId);
      }),
    ),
  );
  deps.onAccountRemoved(accountId);
}

/** A login under way waits, and then finds its account changed or gone. */
export async function lockAccount(tx: Sql, accountId: number): Promise<void> {
  await tx.query(
    `
      select from account
      where id = $1
      for no key update
    `,
    [accountId],
  );
}

/** Clears everything that identifies somebody, or by which the account could be found. */
async function markAccount(tx: Sql, accountId: number): Promise<void> {
  await tx.query(
    `
      with closed as (
        update account_usage set is_closed = true where account_id = $1
      )
      update account
      set removed_at = now(), disabled_at = coalesce(disabled_at, now()), uuid = gen_random_uuid(),
        email = '', email_normal = null, password_hash = '', name = null, apn = '[]',
        may_send_sms = false, time_zone = null, language = null
      where id = $1
    `,
    [accountId],
  );
}

type ChangePasswordDeps = {
  db: Database;
  passwords: Passwords;
  throttle: LoginThrottle;
  /** Runs a few at a time: the work inside the transaction may need a second connection. */
  runFairly: RunFairly;
  revokeSessions: (accountId: number) => Promise<void>;
  refusals: Pick<RefusalLog, 'note'>;
};

type ChangePassword = {
  accountId: number;
  oldPassword: string;
  newPassword: string;
};

/**
 * Replaces the password and ends every session of the account. Throws `forbidden` if the old one is wrong; throws
 * `unavailable` and changes nothing while the session store is unreachable.
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
  const asker = askerOf(email, address);
  if (!(await passwords.verify(oldHash, oldPassword, asker, check))) {
    await throttle.countFailure(email, address);
    deps.refusals.note(accountId, 'password-change-refused', by.actor);
    throw wrongPassword();
  }
  const newHash = await passwords.hash(newPassword, asker);
  if (!(await setPassword(deps, { accountId, oldHash, newHash }, by))) throw wrongPassword();
}

/** False if somebody else has changed the password meanwhile. */
export async function setPassword(
  {
    db,
    runFairly,
    revokeSessions,
  }: Omit<ChangePasswordDeps, 'passwords' | 'throttle' | 'refusals'>,
  change: { accountId: number; oldHash: string; newHash: string },
  by: DoneBy,
): Promise<boolean> {
  return runFairly(askerOfAccount(change.accountId, by.actor.address), () =>
    db.transaction(async (tx) => {
      await lockAccount(tx, change.accountId);
      if (!(await updatePassword(tx, change))) return false;
      // Whoever knew the old password may have requested the change of address.
      await dropEmailChange(tx, change.accountId);
      const entry = { kind: 'password-changed', ...by } as const;
      await insertEntry(tx, change.accountId, entry);
      await revokeSessions(change.accountId);
      return true;
    }),
  );
}

function wrongPassword(): DomainError {
  return new DomainError('forbidden', 'The old password is wrong.');
}

export type AccountsOptions = {
  db: Database;
  sessions: Sessions;
  passwords: Passwords;
  throttle: LoginThrottle;
  countLogin: CountLogin;
  /** Records refused logins. */
  refusals: Pick<RefusalLog, 'note'>;
  /** How long a refused login (429, 503) waits for its answer, ms. Default: 1,000. */
  refusalPauseMs?: number | undefined;
  /** False: an administrator creates accounts, from the command line. */
  openRegistration: boolean;
  countRegistration: CountRegistration;
  countLinkMail: CountLinkMail;
  forgetPersons: DeleteAccountDeps['forgetPersons'];
  onAccountRemoved: DeleteAccountDeps['onAccountRemoved'];
  /** Called in the transaction that changes the account's push tokens. */
  onPushTokens?: (tx: Sql, accountId: number, nowTs: WallMs) => Promise<void>;
  /** The quota `pushTokens`. */
  pushTokensOf: (accountId: number) => number;
  /** The keys that sign links in mails, newest first. */
  linkKeys: readonly Buffer[];
  /** Whether mails can be sent; if not, requests that need one are refused. */
  hasMail: boolean;
  /** Whether the console is served, so that pages can link to it. */
  hasConsole?: boolean;
};

export type AccountsDeps = AccountsOptions & {
  /** For work that ends all sessions of an account: a few at a time, with fair shares for addresses and accounts. */
  runFairly: RunFairly;
  revokeSession: Sessions['revoke'];
  revokeSessions: Sessions['revokeAll'];
};

/**
 * Ends a session and audits who ended it. Throws `not-found` if the account has no such session. Sessions may be in
 * Redis, so there is no transaction for both: the session ends first, so that the audit never claims more than was
 * done.
 */
export async function endSession(
  {
    db,
    revokeSession,
  }: {
    db: Sql;
    revokeSession: (accountId: number, sessionId: string) => Promise<boolean>;
  },
  accountId: number,
  id: string,
  by: DoneBy,
): Promise<void> {
  if (!(await revokeSession(accountId, id)))
    throw new DomainError('not-found', 'There is no such session.');
  const details = { session: id, reason: 'asked' };
  await insertEntry(db, accountId, { kind: 'session-ended', ...by, details });
}

/** How many characters are kept: browsers send about 120. */
const maxUserAgent = 256;

export type LoginOwner = { accountId: number; accountUuid: string };

type AccountLoginDeps = {
  db: Database;
  passwords: Passwords;
  throttle: LoginThrottle;
  countLogin: CountLogin;
  refusals: Pick<RefusalLog, 'note'>;
  revokeSession: (accountId: number, sessionId: string) => Promise<boolean>;
};

type VerifyDeps = Pick<
  AccountLoginDeps,
  'db' | 'passwords' | 'throttle' | 'countLogin' | 'refusals'
>;

type LoginAttempt = AccountLogin & {
  address: string;
  /** The User-Agent; '' if there is none. */
  userAgent: string;
  /** When the request arrived, ms. */
  receivedTs: WallMs;
  /** Checked before the password is hashed: a client that has disconnected needs no answer. */
  hasGone?: () => boolean;
};

/**
 * Verifies the credentials, then begins a session with `start`. Throws `unauthenticated`, in the same words and after
 * the same time for an unknown address and a wrong password; `too-many-requests`; or `account-disabled`, only if the
 * password is right.
 */
export async function logIn<S extends { sessionId: string }>(
  deps: AccountLoginDeps,
  login: LoginAttempt,
  start: (owner: LoginOwner) => Promise<S>,
): Promise<S & LoginOwner> {
  const account = await verifyCredentials(deps, login);
  const { accountId, accountUuid } = account;
  const session = await start({ accountId, accountUuid });
  // While this session began, the password may have been changed and all sessions ended.
  const { sessionId } = session;
  const { address, receivedTs: ts } = login;
  const userAgent = login.userAgent.slice(0, maxUserAgent);
  if (!(await insertLogin(deps.db, account, { ts, sessionId, address, userAgent }))) {
    await deps.revokeSession(accountId, sessionId);
    throw wrongLogin();
  }
  return { ...session, accountId, accountUuid };
}

async function verifyCredentials(
  { db, passwords, throttle, countLogin, refusals }: VerifyDeps,
  login: Omit<LoginAttempt, 'receivedTs' | 'userAgent'>,
): Promise<AccountRow> {
  const { password, address } = login;
  const email = login.email.slice(0, 1_024);
  const check = () => throttle.check(email, address);
  const guard = async () => {
    if (login.hasGone?.()) throw new DomainError('unauthenticated', 'The client disconnected.');
    await check();
  };
  await check();
  await countLogin(email, address);
  // For every account alike, so that the time of the answer reveals nothing.
  if (isTooLong(login)) throw wrongLogin();
  const account = await findAccountByEmail(db, email);
  const hash = account?.passwordHash ?? null;
  // Checked again before the hash: logins that were queued together must not all pass.
  const asker = askerOf(email, address);
  const match = await passwords.verify(hash, password, asker, guard);
  if (match === null || !account) {
    await throttle.countFailure(email, address);
    if (account) refusals.note(account.accountId, 'login-refused', nobodyAt(address));
    throw wrongLogin();
  }
  await throttle.countSuccess(email, address);
  if (account.isDisabled) {
    refusals.note(account.accountId, 'login-while-disabled', nobodyAt(address));
    throw new DomainError('account-disabled', 'The operator has disabled this account.');
  }
  if (match === 'normalized') return account;
  // Rehashes the normalized form, so that the password works however it is typed.
  const { accountId, passwordHash: oldHash } = account;
  const newHash = await passwords.hash(password, asker);
  const isKept = await updatePassword(db, { accountId, oldHash, newHash });
  return isKept ? { ...account, passwordHash: newHash } : account;
}

function nobodyAt(address: string): Actor {
  return { by: 'nobody', sessionId: null, address };
}

/** Longer than any address or password: refused before it is queued. */
function isTooLong({ email, password }: AccountLogin): boolean {
  return email.length > 1_024 || password.length > 1_024;
}

function wrongLogin(): DomainError {
  return new DomainError('unauthenticated', 'The e-mail address or password is wrong.');
}
