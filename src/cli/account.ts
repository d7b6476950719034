import process from 'node:process';
import { deleteAccount, registerAccount, setPassword } from '../accounts/account.ts';
import { disableAccount, enableAccount } from '../accounts/disabled.ts';
import { linkLifetimeMs, makeResetToken } from '../accounts/mailer.ts';
import { createPasswords, type RunFairly } from '../accounts/passwords.ts';
import { forgetTokensOf } from '../accounts/push-tokens.ts';
import { allowSms, findAccountByEmail, listAccounts } from '../accounts/queries.ts';
import { NewCredentials } from '../accounts/schema.ts';
import { createPublicUrl } from '../assembly/shared.ts';
import { insertEntry, operator } from '../audit/audit.ts';
import { loadConfig } from '../config/config.ts';
import { deriveKeys } from '../config/keys.ts';
import { detachDevices } from '../devices/remove.ts';
import { DomainError, saysWhatIsThere } from '../errors.ts';
import { createClearing, forgetPersons, isAccountCleared } from '../history/clear-removed.ts';
import { monotonicClock } from '../lib/clock.ts';
import { describeIssue } from '../lib/schema.ts';
import { removeOverride, saveOverride } from '../quotas/quotas.ts';
import { listUsage } from '../quotas/routes.ts';
import { isQuotaName, type QuotaName, quotaNames } from '../quotas/settings.ts';
import { examineSecret } from '../secret-check/secret-check.ts';
import { describeStartError } from '../start-error.ts';
import { asksForHelp, confirm, findWrongArgument, readPassword } from './command-line.ts';
import { openTools, type Tools } from './operator-command.ts';

type AskPassword = (email: string) => Promise<string>;

/** Returns the lines to print. Throws a DomainError that describes the problem. */
type AccountCommand = (
  tools: Tools,
  email: string,
  askPassword: AskPassword,
  rest: string[],
) => Promise<string[]>;

/** Runs work at once: a command has nobody to take turns with. */
const alone: RunFairly = (_turn, work) => work();
const passwords = createPasswords();
/** A command has no client address, and no queue of logins to wait in. */
const here = '';

const create: AccountCommand = async ({ db }, email, askPassword) => {
  const credentials = check({ email, password: await askPassword(email) });
  const account = await registerAccount(
    { db, passwords },
    { ...credentials, address: here },
    { actor: operator, ts: Date.now(), maySendSms: true },
  );
  return [`Created ${account.email} (${account.accountUuid}).`];
};

const list: AccountCommand = async ({ db }) => {
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

const resetPassword: AccountCommand = async (tools, email, askPassword) => {
  const { accountId, passwordHash: oldHash } = await getByEmail(tools, email);
  const { password } = check({ email, password: await askPassword(email) });
  const newHash = await passwords.hash(password, { address: here, who: email });
  const revokeSessions = revokeWith(tools);
  const deps = { db: tools.db, runFairly: alone, revokeSessions };
  const by = { actor: operator, ts: Date.now() };
  if (!(await setPassword(deps, { accountId, oldHash, newHash }, by))) {
    throw new DomainError('conflict', 'Somebody else changed the password in the meantime.');
  }
  return [`${email} has a new password. All its sessions have ended.`];
};

const remove: AccountCommand = async (tools, email) => {
  const { accountId } = await getByEmail(tools, email);
  const { db, bus } = tools;
  const clearing = createClearing({
    db,
    monotonicClock,
    detach: (id, limit) => detachDevices(db, bus, id, limit),
    onError: () => {},
  });
  const onAccountRemoved = (id: number) => bus.publish('removed', { accountId: id });
  const revokeSessions = revokeWith(tools);
  const deps = { db, runFairly: alone, revokeSessions, forgetPersons, onAccountRemoved };
  await deleteAccount(deps, accountId, { address: here, who: email });
  // If a service is running, it may be deleting already, and continues if this fails.
  const isCleared = await clearing.resume().then(
    () => isAccountCleared(db, accountId),
    () => false,
  );
  return isCleared
    ? [`Deleted ${email} and all its data.`]
    : [
        `Deleted ${email}: nobody can log in or read anything. A running service deletes the rest ` +
          'of its data.',
      ];
};

/** What the operator can allow an account to do. */
const permissions: Record<string, typeof allowSms> = { sms: allowSms };

const allow: AccountCommand = (tools, email, _ask, [name = '']) => permit(tools, email, name, true);
const deny: AccountCommand = (tools, email, _ask, [name = '']) => permit(tools, email, name, false);

async function permit(tools: Tools, email: string, name: string, may: boolean): Promise<string[]> {
  const set = Object.hasOwn(permissions, name) ? permissions[name] : undefined;
  if (!set) {
    const known = Object.keys(permissions).join(', ');
    throw new DomainError('invalid-input', `Unknown permission ${name}: expected one of ${known}.`);
  }
  const { accountId } = await getByEmail(tools, email);
  const kind = may ? 'sms-allowed' : 'sms-denied';
  await tools.db.transaction(async (tx) => {
    await set(tx, accountId, may);
    await insertEntry(tx, accountId, { kind, actor: operator, ts: Date.now() });
  });
  return [may ? `${email} may send ${name}.` : `${email} may no longer send ${name}.`];
}

const disable: AccountCommand = async (tools, email) => {
  const { accountId } = await getByEmail(tools, email);
  const revokeSessions = revokeWith(tools);
  const deps = { db: tools.db, revokeSessions };
  if (!(await disableAccount(deps, accountId, Date.now())))
    return [`${email} was already disabled.`];
  return [
    `${email} is disabled: its sessions have ended, and its devices can no longer log in.`,
    'Nothing was deleted.',
  ];
};

const enable: AccountCommand = async (tools, email) => {
  const { accountId } = await getByEmail(tools, email);
  if (!(await enableAccount(tools, accountId, Date.now()))) return [`${email} was not disabled.`];
  return [`${email} may log in again, and its devices can log in with their existing tokens.`];
};

async function getByEmail({ db }: Tools, email: string) {
  const account = await findAccountByEmail(db, email);
  if (!account) throw new DomainError('not-found', `No account ${email}.`);
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

/** Creates a link with which the owner sets a new password, for when no mail is sent or none arrives. */
const resetLink: AccountCommand = async (tools, email) => {
  const { config, db } = tools;
  const account = await getByEmail(tools, email);
  if (account.isDisabled) throw new DomainError('account-disabled', `${email} is disabled.`);
  const { secret, isKnown } = await examineSecret(db, config);
  if (secret === null || !isKnown)
    throw new DomainError(
      'invalid-input',
      `${config.secretPlace}: this is not the secret that the service uses, so the service ` +
        'would not accept the link.',
    );
  const { mailLinks } = deriveKeys(secret, config.previousSecret ?? undefined);
  const nowTs = Date.now();
  const entry = { kind: 'reset-link-made', actor: operator, ts: nowTs } as const;
  await insertEntry(db, account.accountId, entry);
  const token = makeResetToken(mailLinks, account, nowTs);
  return [
    `${createPublicUrl(config).get()}/reset?token=${token}`,
    `It is valid for ${linkLifetimeMs / 60_000} minutes and works once. Anyone who has it can ` +
      `take over ${email}.`,
  ];
};

/** Shows limit and usage of an account's quotas, or of one of them, and can change that one. */
const quota: AccountCommand = async (tools, email, _askPassword, [name, value]) => {
  const { accountId } = await getByEmail(tools, email);
  if (name === undefined) return show(tools, accountId, quotaNames);
  if (!isQuotaName(name)) {
    const message = `No quota ${name}. Quotas: ${quotaNames.join(', ')}.`;
    throw new DomainError('not-found', message);
  }
  if (value !== undefined) await change(tools, accountId, name, value);
  return show(tools, accountId, [name]);
};

/** Throws `invalid-input`. */
async function change(
  { db }: Tools,
  accountId: number,
  quota: QuotaName,
  text: string,
): Promise<void> {
  const value = text === 'default' ? text : parse(quota, text);
  const details = { quota, value };
  await db.transaction(async (tx) => {
    if (value === 'default') await removeOverride(tx, accountId, quota);
    else await saveOverride(tx, accountId, quota, value);
    const entry = { kind: 'quota-changed', actor: operator, ts: Date.now(), details } as const;
    await insertEntry(tx, accountId, entry);
  });
}

async function show(
  { db, quotas, retention }: Tools,
  accountId: number,
  names: QuotaName[],
): Promise<string[]> {
  const usage = (await listUsage(db, { quotas, retention }, accountId)) ?? [];
  const shown = usage.filter(({ quota }) => names.some((name) => name === quota));
  return shown.map(({ quota, limit, used }) => {
    const own =
      limit === quotas[quota as QuotaName] ? '' : `  (default ${quotas[quota as QuotaName]})`;
    return `${quota}  ${used === null ? '' : `${used} of `}${limit}${own}`;
  });
}

function parse(name: string, text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value > 0) return value;
  const message = `${name}: expected a whole number above 0 or "default", got "${text}".`;
  throw new DomainError('invalid-input', message);
}

const usage = `Usage:
  npm run account -- create <email>           create an account
  npm run account -- list                     show identifier, day of creation, devices, e-mail address
  npm run account -- reset-password <email>   set a new password and end its sessions
  npm run account -- reset-link <email>       print a link with which its owner sets a new password
  npm run account -- delete <email> [--yes]   delete it with its devices, purposes and history, after
                                              you type its address again; --yes: without asking
  npm run account -- quota <email> [<name> [<value>]]
                                              show limits and usage; set a quota for this account, or
                                              with the value "default" restore that of config/
  npm run account -- allow <email> sms        let it send SMS; accounts made with create already may
  npm run account -- deny <email> sms
  npm run account -- disable <email>          end its sessions and lock out its devices; keep its data
  npm run account -- enable <email>           let it and its devices log in again

On a terminal the command asks for the password; otherwise it reads it from standard input. The
environment is that of the service: DATABASE_URL, REDIS_URL, SECRET, DATA_DIR.
`;

/** `takes`: the least and the most arguments. */
const commands: Record<string, { run: AccountCommand; takes: [number, number] }> = {
  create: { run: create, takes: [1, 1] },
  list: { run: list, takes: [0, 0] },
  'reset-password': { run: resetPassword, takes: [1, 1] },
  'reset-link': { run: resetLink, takes: [1, 1] },
  delete: { run: removeIfSure, takes: [1, 1] },
  quota: { run: quota, takes: [1, 3] },
  allow: { run: allow, takes: [2, 2] },
  deny: { run: deny, takes: [2, 2] },
  disable: { run: disable, takes: [1, 1] },
  enable: { run: enable, takes: [1, 1] },
};

process.exitCode = await main(process.argv.slice(2)).catch(explain);

async function main(args: string[]): Promise<number> {
  if (asksForHelp(args)) {
    process.stdout.write(usage);
    return 0;
  }
  const takes = Object.entries(commands).map(([name, { takes }]) => [name, takes] as const);
  const isSure = args[0] === 'delete' && args.includes('--yes');
  const given = isSure ? args.filter((arg) => arg !== '--yes') : args;
  const wrong = findWrongArgument(given, Object.fromEntries(takes));
  const [name = '', ...named] = given;
  const command = commands[name];
  if (wrong !== null || !command) {
    process.stderr.write(`${wrong}\n\n${usage}`);
    return 2;
  }
  // If registration is closed, the first account is created before the first start.
  const mayMake = name === 'create';
  const tools = await openTools(await loadConfig(process.env), { mayMake });
  try {
    const [email = '', ...others] = named;
    const ask = (email: string) => readPassword(email, process.stdin, process.stderr);
    const rest = isSure ? ['--yes'] : others;
    const lines = await command.run(tools, email, ask, rest).catch(async (error: unknown) => {
      // "There is one already", or none any more: a failover must not undo what was read.
      if (saysWhatIsThere(error)) await tools.db.confirmReads();
      throw error;
    });
    for (const line of lines) console.log(line);
    return 0;
  } finally {
    await tools.close();
  }
}

/** A deletion cannot be undone, so it asks for the address again, even if standard input is not a terminal. */
async function removeIfSure(...args: Parameters<AccountCommand>): Promise<string[]> {
  const [tools, given, , [sure]] = args;
  const { email, accountUuid } = await getByEmail(tools, given);
  if (sure !== '--yes') {
    const account = (await listAccounts(tools.db)).find((one) => one.accountUuid === accountUuid);
    console.log(
      `This deletes ${email} with its ${account?.devices ?? 0} devices and all their history.`,
    );
    const question = 'Type its e-mail address again to delete it: ';
    if (!(await confirm(question, process.stdin, process.stderr, email)))
      throw new DomainError('invalid-input', `Nothing was deleted: expected ${email} or --yes.`);
  }
  return remove(...args);
}

function explain(error: unknown): number {
  const lines = error instanceof DomainError ? [error.message] : describeStartError(error);
  const expected = error instanceof Error && error.message.startsWith('No password');
  if (lines) for (const line of lines) console.error(line);
  else console.error(expected ? error.message : error);
  return 1;
}
