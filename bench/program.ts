import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A program that the bench runs beside itself. */
export type Program = {
  pid: number;
  /** The first line that `isReady` accepted, parsed. */
  ready: Record<string, unknown>;
  /** The lines after it, as they come. */
  onLine: (listener: (line: string) => void) => void;
  send: (line: string) => void;
  stop: () => Promise<void>;
};

export type ProgramOptions = {
  command: string;
  args: string[];
  env?: Record<string, string>;
  cwd?: string;
  isReady?: (line: Record<string, unknown>) => boolean;
  timeoutMs?: number;
};

/** Starts a program and resolves when it says, by a line of JSON, that it is ready. */
export async function startProgram({
  command,
  args,
  env = {},
  cwd,
  isReady = (line) => line['ready'] === true,
  timeoutMs = 60_000,
}: ProgramOptions): Promise<Program> {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const listeners: ((line: string) => void)[] = [];
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
      for (const listener of listeners) listener(line);
      const parsed = parseLine(line);
      if (parsed === null || !isReady(parsed)) return;
      clearTimeout(timer);
      resolve(parsed);
    });
  });
  return {
    pid: child.pid ?? 0,
    ready,
    onLine: (listener) => void listeners.push(listener),
    send: (line) => void child.stdin.write(`${line}\n`),
    async stop() {
      const limit = setTimeout(() => child.kill('SIGKILL'), 20_000);
      child.kill('SIGTERM');
      await ended;
      clearTimeout(limit);
    },
  };
}

/** The Node that runs this, on a file beside this one. */
export function startContender(file: string, args: string[] = []): Promise<Program> {
  const path = new URL(`./contenders/${file}`, import.meta.url).pathname;
  return startProgram({ command: process.execPath, args: [path, ...args] });
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
