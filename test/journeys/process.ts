import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { dirname, delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';

export const projectDir = fileURLToPath(new URL('../..', import.meta.url));

/** A program of the project as a child process, and its output so far. */
export type Running = {
  child: ChildProcess;
  stdout(): string;
  stderr(): string;
  /** Resolves as soon as standard output matches. Rejects if the program ends before. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** The exit status, once it has ended. */
  ended(): Promise<number>;
};

/** A busy machine may take longer to stop a database than the service would wait for it. */
const STOP_TIMEOUT_MS = '60000';

/** Runs it in the project's directory (or `cwd`) with this very Node first, and hardly anything of this environment. */
export function runProgram(
  program: string,
  args: string[],
  options: { env?: Record<string, string>; input?: string; cwd?: string } = {},
): Running {
  const path = `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`;
  const { HOME = '/', NODE_COMPILE_CACHE = '' } = process.env;
  // With a longer delay before the stop, the program sets a longer timeout itself.
  const stop = options.env?.['DRAIN_DELAY_MS'] === undefined ? { STOP_TIMEOUT_MS } : {};
  const env = { PATH: path, HOME, NODE_COMPILE_CACHE, ...stop, ...options.env };
  const child = spawn(program, args, { cwd: options.cwd ?? projectDir, env, stdio: 'pipe' });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  const closed = once(child, 'close').then(([code]) => Number(code ?? -1));
  child.stdin.end(options.input ?? '');
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    ended: () => closed,
    async printed(pattern) {
      for (;;) {
        const match = pattern.exec(stdout);
        if (match) return match;
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`${program} ended: ${stdout}${stderr}`);
        await Promise.race([once(child.stdout, 'data'), closed]);
      }
    },
  };
}
