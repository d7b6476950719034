import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, delimiter } from 'node:path';
import { projectDir } from '../journeys/process.ts';

/** A shell that runs a page's code blocks. As for a reader, later blocks see what earlier ones set. */
export type Shell = {
  /** Resolves with what the block printed. Rejects if a command fails or writes to standard error. */
  run: (block: string) => Promise<string>;
  close: () => Promise<void>;
};

/** Runs in the project's directory, with this very Node first in the PATH. */
export function startShell(env: Record<string, string>): Shell {
  const PATH = `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`;
  const child = spawn('sh', ['-eu'], { cwd: projectDir, env: { PATH, HOME: '/tmp', ...env } });
  let [stdout, stderr] = ['', ''];
  let blocks = 0;
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString('utf8')));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  const ended = once(child, 'close');
  return {
    async run(block) {
      const mark = `--- end of block ${++blocks} ---\n`;
      stdout = '';
      child.stdin.write(`${block}\nprintf '\\n%s' '${mark}'\n`);
      while (!stdout.endsWith(mark)) {
        if (child.exitCode !== null) throw new Error(`The shell ended: ${stdout}${stderr}`);
        await Promise.race([once(child.stdout, 'data'), ended]);
      }
      if (stderr !== '') throw new Error(stderr);
      return stdout.slice(0, -mark.length);
    },
    async close() {
      child.stdin.end();
      await ended;
    },
  };
}
