import process from 'node:process';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { parseArgs, type ParseArgsConfig } from 'node:util';
import type { OnRows } from '../db/portable/write.ts';
import { messageOf } from '../lib/thrown.ts';
import type { Write } from '../log/logger.ts';
import { StartError } from '../start-error.ts';

/** The least and the most arguments after a command's name. */
type Takes = [number, number];

export function asksForHelp(args: string[]): boolean {
  return args.includes('--help') || args.includes('-h');
}

/**
 * The problem with `npm run PROGRAM -- NAME ARGUMENT…`, in a sentence; null if there is none. `takes` lists how many
 * arguments each command has.
 */
export function findWrongArgument(
  [name, ...rest]: string[],
  takes: Record<string, Takes>,
): string | null {
  const option = [name, ...rest].find((arg) => /^--?[a-z]/i.test(arg ?? ''));
  if (option !== undefined) return `Unknown option '${option}'.`;
  if (name === undefined) return 'Expected a command.';
  const [least, most] = (Object.hasOwn(takes, name) && takes[name]) || [-1, -1];
  if (least < 0) return `Unknown command "${name}".`;
  if (rest.length < least) return `${name}: an argument is missing.`;
  if (rest.length > most) return `${name}: unexpected argument "${rest.slice(most).join(' ')}".`;
  return null;
}

type Flags = NonNullable<ParseArgsConfig['options']>;
type Values<T extends Flags> = ReturnType<
  typeof parseArgs<{ args: string[]; options: T }>
>['values'];

/** Like Node's `parseArgs`. Throws `UsageError`, which describes the problem in one sentence. */
export function readArguments<T extends ParseArgsConfig>(
  config: T,
): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    // Node adds advice that fits no command here.
    const [sentence = ''] = messageOf(error).split(/\. To specify|\. This command|\n/);
    throw new UsageError(`${sentence.replace(/\.$/, '')}.`);
  }
}

/**
 * Reads the options of a program that takes nothing else, and returns the result of `read`. With `--help` it prints
 * `usage` and ends the process. If an option is wrong (a `UsageError`), it prints the problem and `usage`, and ends it
 * with 2.
 */
export function readOptionsOrExit<T extends Flags, R>(
  usage: string,
  options: T,
  read: (values: Values<T>) => R,
): R {
  const text = `${usage.trimEnd()}\n`;
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(text);
    process.exit(0);
  }
  try {
    return read(readArguments({ args, options }).values);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    process.stderr.write(`${error.message}\n\n${text}`);
    process.exit(2);
  }
}

/** A command cannot run with these arguments. The message says what to write, with a line for each problem. */
export class UsageError extends Error {}

type Input = NodeJS.ReadableStream & { isTTY?: boolean };

/** Whether the first line of `input` is `expected`. On a terminal it asks for it. */
export async function confirm(
  question: string,
  input: Input,
  output: { write(text: string): unknown },
  expected = 'yes',
): Promise<boolean> {
  if (input.isTTY) output.write(question);
  const lines = createInterface({ input });
  try {
    for await (const line of lines) return line.trim() === expected;
  } finally {
    lines.close();
  }
  return false;
}

type PasswordInput = NodeJS.ReadableStream & { isTTY?: boolean };

/** The first line of `input`. On a terminal it asks for it and does not show it. Throws if there is none. */
export async function readPassword(
  email: string,
  input: PasswordInput,
  output: { write(text: string): unknown },
): Promise<string> {
  const hidden = new Writable({ write: (_chunk, _encoding, done) => done() });
  if (input.isTTY) output.write(`Password of ${email}: `);
  const lines = createInterface({ input, output: hidden, terminal: input.isTTY === true });
  try {
    for await (const line of lines) return line;
  } finally {
    lines.close();
    if (input.isTTY) output.write('\n');
  }
  throw new Error('No password: standard input is empty.');
}

const nothing: Write = () => {};

/** The log of the service's parts when a command runs them: it prints warnings for the person at the terminal. */
export const consoleLog = {
  debug: nothing,
  info: nothing,
  warn: ((_context, message) => console.error(message)) satisfies Write,
};

type Output = { write(text: string): unknown; isTTY?: boolean; columns?: number };

/** Shows the progress of a run: one line that changes on a terminal, plain lines anywhere else. */
export type Screen = {
  /** How often to call `live`. */
  readonly refreshMs: number;
  /** Text that stays. It replaces the line that changes. */
  say(text: string): void;
  /** Replaces the line that changes; without a terminal, writes a line of its own. */
  live(text: string): void;
  bar(label: string, done: number, total: number): void;
};

const barWidth = 30;

export function createScreen(output: Output): Screen {
  const tty = output.isTTY === true;
  let unfinished = false;
  const replace = (text: string) => {
    // A terminal that does not know its width reports 0.
    const width = (output.columns || 80) - 1;
    output.write(`\r${text.slice(0, width)}\u001b[K`);
    unfinished = true;
  };
  const say = (text: string) => {
    output.write(`${unfinished ? '\r\u001b[K' : ''}${text}\n`);
    unfinished = false;
  };
  return {
    refreshMs: tty ? 1_000 : 5_000,
    say,
    live: (text) => (tty ? replace(text) : say(text)),
    bar(label, done, total) {
      if (!tty) {
        if (isQuarter(done, total)) say(`${label}: ${done} of ${total}`);
        return;
      }
      const filled = Math.round((done / total) * barWidth);
      replace(`${label} [${'='.repeat(filled).padEnd(barWidth, ' ')}] ${done} of ${total}`);
      if (done === total) {
        output.write('\n');
        unfinished = false;
      }
    },
  };
}

/** Whether `done` is the first count at or beyond a quarter of `total`. */
function isQuarter(done: number, total: number): boolean {
  return Math.floor((done * 4) / total) > Math.floor(((done - 1) * 4) / total);
}

const number = (n: number) => Math.round(n).toLocaleString('en-US');

/**
 * Reports the progress of a copy, from its first row on, at the interval of the screen.
 * `now`: any clock, ms.
 */
export function showRows(screen: Screen, now: () => number = () => performance.now()): OnRows {
  let startMs: number | undefined;
  let nextMs = 0;
  return ({ table, rows, expected }) => {
    const atMs = now();
    if (startMs === undefined) [startMs, nextMs] = [atMs, atMs + screen.refreshMs];
    if (atMs < nextMs) return;
    nextMs = atMs + screen.refreshMs;
    const perSecond = rows / ((atMs - startMs) / 1_000);
    // The expected number is an estimate. Beyond it no percentage is shown.
    const share = expected > rows ? `, ${Math.floor((100 * rows) / expected)} %` : '';
    screen.live(`${number(rows)} rows${share}, ${number(perSecond)} rows/s, now ${table}`);
  };
}

/** The last line of a copy: its size and how long it took. */
export function summarise(
  { tables }: { tables: readonly { rows: number; bytes: number }[] },
  seconds: number,
): string {
  const sum = (key: 'rows' | 'bytes') => tables.reduce((total, each) => total + each[key], 0);
  const megabytes = Math.ceil(sum('bytes') / 2 ** 20);
  return `${tables.length} tables, ${number(sum('rows'))} rows, ${number(megabytes)} MB, ${seconds.toFixed(1)} s`;
}

const signals = ['SIGINT', 'SIGTERM'] as const;

/**
 * Runs `work` with a signal that aborts when the process is asked to end, so that it can undo what it began. Then
 * throws a StartError that describes what remains.
 */
export async function untilInterrupted<T>(
  left: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const interrupt = () => controller.abort();
  for (const name of signals) process.once(name, interrupt);
  try {
    return await work(controller.signal);
  } catch (cause) {
    throw controller.signal.aborted ? new StartError(`Interrupted. ${left}`, { cause }) : cause;
  } finally {
    for (const name of signals) process.off(name, interrupt);
  }
}
