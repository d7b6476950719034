import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';

/** The result of an npm script: its exit status, and its output to both streams. */
type Ended = { status: number; output: string };

function run(script: string): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', ['run', '--silent', script], { stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.once('error', reject);
    child.once('close', (code) =>
      resolve({ status: code ?? 1, output: Buffer.concat(chunks).toString() }),
    );
  });
}

/**
 * Runs npm scripts side by side, as many as there are processors, and prints the output of each in one piece when it
 * ends. All of them run even if one fails, so that one run shows everything that is wrong.
 */
async function runAll(scripts: string[]): Promise<boolean> {
  const waiting = [...scripts];
  let passed = true;
  const work = async () => {
    for (let script = waiting.shift(); script !== undefined; script = waiting.shift()) {
      const { status, output } = await run(script);
      console.log(`${status === 0 ? '✓' : '✗'} npm run ${script}\n${output.trimEnd()}`);
      if (status !== 0) passed = false;
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  return passed;
}

// `node test/support/side-by-side.ts lint typecheck`: the longest first.
process.exitCode = (await runAll(process.argv.slice(2))) ? 0 : 1;
