import { disableAccount, enableAccount } from '../../accounts/disable-account.ts';
import { deleteAccount } from '../../accounts/delete-account.ts';
import { setPassword } from '../../accounts/change-password.ts';
import { forgetTokensOf } from '../../accounts/push-tokens.ts';
import { createPasswords } from '../../accounts/passwords.ts';
import { allowSms } from '../../accounts/may-send-sms.ts';
import { findAccountByEmail } from '../../accounts/find-account.ts';
import { listAccounts } from '../../accounts/list-accounts.ts';
import type { FairQueue } from '../../accounts/fair-queue.ts';
import { registerAccount } from '../../accounts/register.ts';
import { NewCredentials } from '../../accounts/schema.ts';
import { operator } from '../../audit/entry.ts';
import { insertEntry } from '../../audit/audit.ts';
import { createClearing, isAccountCleared } from '../../history/clear-removed.ts';
import { forgetPersons } from '../../history/owned-rows.ts';
import { detachDevices } from '../../devices/remove.ts';
import { monotonicClock } from '../../lib/clock.ts';
import { DomainError } from '../../errors.ts';
import type { Tools } from './open.ts';
import { describeIssue } from '../../lib/issue-message.ts';

type AskPassword = (email: string) => Promise<string>;

/** Each gives the lines to print, and throws a DomainError that says what is wrong. */
export type AccountCommand = (
  tools: Tools,
  email: string,
  askPassword: AskPassword,
  rest: string[],
) => Promise<string[]>;

/** There is nobody to take turns with. */
const alone: FairQueue = (_turn, work) => work();
const passwords = createPasswords();
/** A command has no client address, and there is no queue of logins to wait in. */
const here = '';

export const create: AccountCommand = async ({ db }, email, askPassword) => {
  const credentials = check({ email, password: await askPassword(email) });
  const account = await registerAccount(
    { db, passwords },
    { ...credentials, address: here },
    { actor: operator, ts: Date.now(), maySendSms: true },
  );
  return [`Created ${account.email} (${account.accountUuid}).`];
};

export const list: AccountCommand = async ({ db }) => {
  const accounts = await listAccounts(db);
  const dayOf = (ts: number) => new Date(ts).toISOString().slice(0, 10);
  const lines = accounts.map(({ email, accountUuid, devices, createdTs, disabledTs }) =>
    [
      accountUuid,
      dayOf(createdTs),
      devices,
      email,
      ...(disabledTs === null ? [] : [`disabled ${dayOf(disabledTs)}`]),
    ].join('  '),
  );
  return accounts.length > 0 ? lines : ['There are no accounts.'];
};

export const resetPassword: AccountCommand = async (tools, email, askPassword) => {
  const { accountId, passwordHash: oldHash } = await getByEmail(tools, email);
  const { password } = check({ email, password: await askPassword(email) });
  const newHash = await passwords.hash(password, { address: here, who: email });
  const revokeSessions = revokeWith(tools);
  const deps = { db: tools.db, inTurn: alone, revokeSessions };
  const by = { actor: operator, ts: Date.now() };
  if (!(await setPassword(deps, { accountId, oldHash, newHash }, by))) {
    throw new DomainError('conflict', 'The password was changed by somebody else meanwhile.');
  }
  return [`${email} has a new password; all its sessions have ended.`];
};

export const remove: AccountCommand = async (tools, email) => {
  const { accountId } = await getByEmail(tools, email);
  const { db, bus } = tools;
  const clearing = createClearing({
    db,
    nowMs: monotonicClock,
    detach: (id, limit) => detachDevices(db, bus, id, limit),
    onError: () => {},
  });
  const onAccountRemoved = (id: number) => bus.publish('removed', { accountId: id });
  const revokeSessions = revokeWith(tools);
  const deps = { db, inTurn: alone, revokeSessions, forgetPersons, onAccountRemoved };
  await deleteAccount(deps, accountId, { address: here, who: email });
  // Where a service runs it may be at it already, and it goes on with what fails here.
  const isCleared = await clearing.resume().then(
    () => isAccountCleared(db, accountId),
    () => false,
  );
  return isCleared
    ? [`Deleted ${email} with everything that belonged to it.`]
    : [`Deleted ${email}: nobody can log in or read anything. A running service deletes the rest.`];
};

/** What the operator has to allow an account. */
const permissions: Record<string, typeof allowSms> = { sms: allowSms };

export const allow: AccountCommand = (tools, email, _ask, [name = '']) =>
  permit(tools, email, name, true);
export const deny: AccountCommand = (tools, email, _ask, [name = '']) =>
  permit(tools, email, name, false);

async function permit(tools: Tools, email: string, name: string, may: boolean): Promise<string[]> {
  const set = Object.hasOwn(permissions, name) ? permissions[name] : undefined;
  if (!set) {
    const known = Object.keys(permissions).join(', ');
    throw new DomainError('invalid-input', `Nothing is called ${name}; there is: ${known}.`);
  }
  const { accountId } = await getByEmail(tools, email);
  const kind = may ? 'sms-allowed' : 'sms-denied';
  await tools.db.transaction(async (tx) => {
    await set(tx, accountId, may);
    await insertEntry(tx, accountId, { kind, actor: operator, ts: Date.now() });
  });
  return [may ? `${email} may send ${name}.` : `${email} may send no ${name} any more.`];
}

export const disable: AccountCommand = async (tools, email) => {
  const { accountId } = await getByEmail(tools, email);
  const revokeSessions = revokeWith(tools);
  const deps = { db: tools.db, revokeSessions };
  if (!(await disableAccount(deps, accountId, Date.now())))
    return [`${email} was disabled before.`];
  return [
    `${email} is disabled: its sessions have ended, its devices are let in no more.`,
    'Nothing was deleted.',
  ];
};

export const enable: AccountCommand = async (tools, email) => {
  const { accountId } = await getByEmail(tools, email);
  if (!(await enableAccount(tools, accountId, Date.now()))) return [`${email} was not disabled.`];
  return [`${email} may log in again; its devices are let in with the tokens that they have.`];
};

export async function getByEmail({ db }: Tools, email: string) {
  const account = await findAccountByEmail(db, email);
  if (!account) throw new DomainError('not-found', `There is no account ${email}.`);
  return account;
}

function revokeWith({ db, store, bus }: Tools) {
  return async (accountId: number) => {
    await store.revokeAll(accountId);
    await forgetTokensOf(db, accountId, null);
    bus.publish('revoked', { accountId });
  };
}

function check(input: { email: string; password: string }): NewCredentials {
  const result = NewCredentials.safeParse(input);
  if (result.success) return result.data;
  const said = result.error.issues.map(
    ({ path, message }) => `${path.join('.')}: ${describeIssue(message)}.`,
  );
  throw new DomainError('invalid-input', said.join('\n'));
}
