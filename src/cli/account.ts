import process from 'node:process';
import { loadConfig } from '../config/config.ts';
import { DomainError, saysWhatIsThere } from '../errors.ts';
import { describeStartError } from '../start-error.ts';
import {
  allow,
  type AccountCommand,
  create,
  deny,
  disable,
  enable,
  getByEmail,
  list,
  remove,
  resetPassword,
} from './account/commands.ts';
import { openTools } from './account/open.ts';
import { quota } from './account/quota.ts';
import { resetLink } from './account/reset-link.ts';
import { listAccounts } from '../accounts/list-accounts.ts';
import { asksForHelp, findWrongArgument } from './command-line.ts';
import { confirm } from './confirm.ts';
import { readPassword } from './simulate/password.ts';

const usage = `Usage:
  npm run account -- create <email>           make an account
  npm run account -- list                     identifier, day of creation, devices, e-mail address
  npm run account -- reset-password <email>   give it a new password and end its sessions
  npm run account -- reset-link <email>       print a link by which its owner sets a new password
  npm run account -- delete <email> [--yes]   remove it with its devices, purposes and history, once its
                                              address is typed again; --yes: without asking
  npm run account -- quota <email> [<name> [<value>]]
                                              show limits and usage; set a quota for this account, or
                                              with "default" as value go back to that of config/
  npm run account -- allow <email> sms        let it send SMS; accounts made by create may already
  npm run account -- deny <email> sms
  npm run account -- disable <email>          end its sessions and shut its devices out; keep everything
  npm run account -- enable <email>           let it and its devices in again

The password is asked for on a terminal, and read from standard input elsewhere. The environment is
that of the service: DATABASE_URL, REDIS_URL, SECRET, DATA_DIR.
`;

/** `takes`: how many arguments, at least and at most. */
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
  // Where registration is closed, the first account is made before the first start.
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

/** What is deleted cannot be had again: it asks for the address once more, also where standard input is no terminal. */
async function removeIfSure(...args: Parameters<AccountCommand>): Promise<string[]> {
  const [tools, given, , [sure]] = args;
  const { email, accountUuid } = await getByEmail(tools, given);
  if (sure !== '--yes') {
    const account = (await listAccounts(tools.db)).find((one) => one.accountUuid === accountUuid);
    console.log(
      `This deletes ${email} with its ${account?.devices ?? 0} devices and all of their history.`,
    );
    const question = 'Type its e-mail address again to delete it: ';
    if (!(await confirm(question, process.stdin, process.stderr, email)))
      throw new DomainError('invalid-input', `Nothing was deleted: expected ${email}, or --yes.`);
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
