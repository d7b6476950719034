import process from 'node:process';
import { listAccountIds } from '../accounts/queries.ts';
import { type Config, loadConfig } from '../config/config.ts';
import { DomainError } from '../errors.ts';
import {
  acceptSecret,
  count,
  countDependents,
  countTokensOf,
  type Dependents,
  describeDependents,
  describeRefusal,
  endChange,
  type Examined,
  examineSecret,
} from '../secret-check/secret-check.ts';
import { describeStartError } from '../start-error.ts';
import { asksForHelp, confirm, findWrongArgument } from './command-line.ts';
import { openTools, type Tools } from './operator-command.ts';

type Dialogue = { say(line: string): void; confirm(): Promise<boolean> };

/** Returns the exit status: 0, or 1 if the service would not start or nothing was changed. */
type SecretCommand = (tools: Tools, config: Config, dialogue: Dialogue) => Promise<number>;

const status: SecretCommand = async ({ db }, config, { say }) => {
  const examined = await examineSecret(db, config);
  const lines = examined.isAllowed
    ? [describeAllowed(examined, config), ...(await describeChange(db, examined))]
    : describeRefusal(examined, config);
  for (const line of lines) say(line);
  return examined.isAllowed ? 0 : 1;
};

const accept: SecretCommand = async (tools, config, { say, confirm }) => {
  const { secretPlace: place } = config;
  const examined = await examineSecret(tools.db, config);
  if (examined.isAllowed) {
    say(describeAllowed(examined, config));
    say('Nothing to accept.');
    return 0;
  }
  if (examined.left > 0 && examined.current !== null) {
    say(`${place}: ends the change of the secret.`);
    say(
      `This invalidates the tokens of ${count(examined.left, 'device')} and all sessions made ` +
        'with the previous secret.',
    );
    say('Each device needs a new token (POST /v2/devices/{deviceAuthUuid}/token).');
    if (!(await confirm())) return nothingChanged(say);
    await endChange(tools.db, examined.current);
    say('Accepted. Start every process with this secret only.');
    return 0;
  }
  const dependents = await countAll(tools, config);
  say(
    examined.secret === null
      ? `${place}: does not exist; a new secret is created there.`
      : `${place}: becomes this database's secret.`,
  );
  say(
    `This invalidates the tokens of ${describeDependents(dependents)}: every device needs a new token`,
  );
  say('(POST /v2/devices/{deviceAuthUuid}/token), and everybody has to log in again.');
  say('If the earlier secret still exists, restore it instead.');
  if (!(await confirm())) return nothingChanged(say);
  const { made } = await acceptSecret(tools.db, config);
  await endRedisSessions(tools, config);
  say(made ? `Accepted. Created ${place}: keep a copy of it.` : 'Accepted.');
  say(
    'Restart every process of the service: a running process keeps using the secret it started with.',
  );
  return 0;
};

function nothingChanged(say: Dialogue['say']): number {
  say('Nothing was changed: expected yes.');
  return 1;
}

/** The progress of a change of the secret; empty if none is in progress. */
async function describeChange(db: Tools['db'], { checks }: Examined): Promise<string[]> {
  if (checks.length < 2) return [];
  const { devices } = await countDependents(db);
  const left = await countTokensOf(db, checks.slice(1));
  const those = `${left.toLocaleString('en')} of ${count(devices, 'device')}`;
  return [
    left === 0
      ? 'A change is in progress, and every device has a token of the new secret: ' +
        'SECRET_PREVIOUS can be removed.'
      : `A change is in progress: ${those} still ${left === 1 ? 'has' : 'have'} a token of the ` +
        'previous secret.',
  ];
}

function describeAllowed(examined: Examined, { secretPlace }: Config): string {
  const { checks, current } = examined;
  if (current !== null && checks.includes(current))
    return `${secretPlace}: is this database's secret.`;
  if (examined.isKnown)
    return (
      `${secretPlace}: is new here, and SECRET_PREVIOUS is this database's secret: the next ` +
      'start of the service adopts both.'
    );
  const found = current === null ? 'does not exist, and is created by' : 'is adopted by';
  return (
    `${secretPlace}: ${found} the next start of the service; nothing is known to depend on ` +
    'another secret.'
  );
}

/** Includes sessions in Redis, because this command ends them too. */
async function countAll({ db, store }: Tools, { redisUrl }: Config): Promise<Dependents> {
  const dependents = await countDependents(db);
  if (redisUrl === null) return dependents;
  let { sessions } = dependents;
  for (const accountId of await listAccountIds(db))
    sessions += (await store.list(accountId, Date.now())).length;
  return { ...dependents, sessions };
}

/** Ends the sessions in Redis. Running processes then close their streams. */
async function endRedisSessions({ db, store, bus }: Tools, { redisUrl }: Config): Promise<void> {
  if (redisUrl === null) return;
  for (const accountId of await listAccountIds(db)) {
    await store.revokeAll(accountId);
    bus.publish('revoked', { accountId });
  }
}

const usage = `Usage:
  npm run secret -- status   show which secret was found, and whether it is this database's
  npm run secret -- accept   adopt another secret or create a new one: all device tokens and sessions end

accept says what stops working and asks for a yes, on a terminal or from standard input. The
environment is that of the service: DATABASE_URL, REDIS_URL, SECRET or SECRET_FILE, DATA_DIR.
`;

const commands: Record<string, SecretCommand> = { status, accept };

process.exitCode = await main(process.argv.slice(2)).catch(explain);

async function main(args: string[]): Promise<number> {
  if (asksForHelp(args)) {
    process.stdout.write(usage);
    return 0;
  }
  const wrong = findWrongArgument(args, { status: [0, 0], accept: [0, 0] });
  const command = commands[args[0] ?? ''];
  if (wrong !== null || !command) {
    process.stderr.write(`${wrong}\n\n${usage}`);
    return 2;
  }
  const config = await loadConfig(process.env);
  const tools = await openTools(config);
  try {
    return await command(tools, config, {
      say: (line) => console.log(line),
      confirm: () => confirm('Type yes to accept: ', process.stdin, process.stderr),
    });
  } finally {
    await tools.close();
  }
}

function explain(error: unknown): number {
  const lines = error instanceof DomainError ? [error.message] : describeStartError(error);
  for (const line of lines ?? [error]) console.error(line);
  return 1;
}
