import { runProgram } from '../../journeys/process.ts';

/** Runs `npm run engine` as a process of its own. `input`: its standard input. */
export async function runEngine(args: string[], input = '') {
  const program = runProgram(process.execPath, ['src/cli/engine.ts', ...args], { input });
  const status = await program.ended();
  return { status, stdout: program.stdout(), stderr: program.stderr() };
}

/** Its output with `--json`, line by line. */
export async function runForJson(args: string[], input: string): Promise<Told[]> {
  const { stdout } = await runEngine([...args, '--json'], input);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Told);
}

export type Told = { kind: string; line?: number; arrivedTs?: number } & Record<string, unknown>;
