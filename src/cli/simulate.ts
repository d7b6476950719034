import process from 'node:process';
import { help, type Options, parseOptions } from './simulate/options.ts';
import { createScreen, readPassword, UsageError } from './command-line.ts';
import { simulate } from './simulate/run.ts';
import { messageOf } from '../lib/thrown.ts';

const samePressMs = 1_000;

process.exitCode = await main(process.argv.slice(2)).catch(explain);

async function main(args: string[]): Promise<number> {
  const options = parseOptions(args);
  if (options.help) {
    process.stdout.write(help);
    return 0;
  }
  const credentials = await readCredentials(options);
  const screen = createScreen(process.stdout);
  const agrees = await simulate({ options, credentials, screen, signal: interrupted() });
  return agrees ? 0 : 1;
}

async function readCredentials({ account: email }: Options) {
  if (email === undefined) return null;
  return { email, password: await readPassword(email, process.stdin, process.stderr) };
}

/** Aborts at the first Ctrl-C, which ends the run but still compares. A later one ends the process. */
function interrupted(): AbortSignal {
  const controller = new AbortController();
  let firstMs: number | undefined;
  const onSignal = () => {
    firstMs ??= performance.now();
    controller.abort();
    // npm forwards a signal that the terminal has also sent to this process: one Ctrl-C arrives twice.
    if (performance.now() - firstMs > samePressMs) process.exit(130);
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return controller.signal;
}

function explain(error: unknown): number {
  process.stderr.write(`${messageOf(error)}\n`);
  if (!(error instanceof UsageError)) return 1;
  process.stderr.write('Use --help to see the options.\n');
  return 2;
}
