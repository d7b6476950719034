import process from 'node:process';
import { loadConfig } from '../config/config.ts';
import { DomainError } from '../errors.ts';
import { describeStartError } from '../start-error.ts';
import { openTools } from './account/open.ts';
import { asksForHelp, findWrongArgument } from './command-line.ts';
import { confirm } from './confirm.ts';
import { accept, type SecretCommand, status } from './secret/commands.ts';

const usage = `Usage:
  npm run secret -- status   what was looked at, and whether it is this database's secret
  npm run secret -- accept   take another secret, or a new one: all device tokens and sessions end

accept says what ends and asks for a yes: on a terminal, or from standard input elsewhere. The
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
