import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A child process of the bench. */
export type Program = {
  pid: number;
  /** The first line that `isReady` accepted, parsed. */
  ready: Record<string, unknown>;
  /** Writes a line and returns the next one that it prints. */
  ask: (line: string) => Promise<string>;
  stop: () => Promise<void>;
};

export type ProgramOptions = {
  command: string;
  args: string[];
  env?: Record<string, string>;
  cwd?: string;
  /** All of standard input; absent: it stays open for `ask`. */
  input?: string;
  isReady?: (line: Record<string, unknown>) => boolean;
  timeoutMs?: number;
};

/** Starts a program and resolves when it prints a line of JSON that `isReady` accepts. */
export async function startProgram({
  command,
  args,
  env = {},
  cwd,
  input,
  isReady = (line) => line['ready'] === true,
  timeoutMs = 60_000,
}: ProgramOptions): Promise<Program> {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  if (input !== undefined) child.stdin.end(input);
  const answers: ((line: string) => void)[] = [];
  const last: string[] = [];
  const ended = once(child, 'close');
  const name = `${command} ${args.join(' ')}`;
  createInterface(child.stderr).on('line', (line) => remember(last, line));
  const ready = await new Promise<Record<string, unknown>>((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${name} ${why}: ${last.join('\n')}`));
    const timer = setTimeout(() => (child.kill('SIGKILL'), fail('is not ready')), timeoutMs);
    child.once('error', reject);
    child.once('close', (code) => (clearTimeout(timer), fail(`ended with ${code}`)));
    createInterface(child.stdout).on('line', (line) => {
      remember(last, line);
      answers.shift()?.(line);
      const parsed = parseLine(line);
      if (parsed === null || !isReady(parsed)) return;
      clearTimeout(timer);
      resolve(parsed);
    });
  });
  return {
    pid: child.pid ?? 0,
    ready,
    ask(line) {
      child.stdin.write(`${line}\n`);
      return new Promise((resolve) => answers.push(resolve));
    },
    async stop() {
      const limit = setTimeout(() => child.kill('SIGKILL'), 20_000);
      child.kill('SIGTERM');
      await ended;
      clearTimeout(limit);
    },
  };
}

/** Runs a file of this folder with the Node that runs this one. */
export function startContender(
  file: string,
  args: string[] = [],
  input?: string,
): Promise<Program> {
  const path = new URL(`./contenders/${file}`, import.meta.url).pathname;
  return startProgram({
    command: process.execPath,
    args: [path, ...args],
    ...(input === undefined ? {} : { input }),
  });
}

function remember(lines: string[], line: string): void {
  lines.push(line);
  if (lines.length > 20) lines.shift();
}

function parseLine(line: string): Record<string, unknown> | null {
  if (!line.startsWith('{')) return null;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return null;
  }
}
