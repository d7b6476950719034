import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { blocksOf, readProjectFile } from '../docs/readme.ts';
import { projectDir, runProgram } from '../journeys/process.ts';
import { type TestService, testService } from '../journeys/service.ts';

/** It has its own package.json and lockfile. What is installed there stays for the next run. */
const directory = join(projectDir, 'test/clients/typescript');

async function run(program: string, ...args: string[]): Promise<string> {
  const env = process.env as Record<string, string>;
  const running = runProgram(program, args, { cwd: directory, env });
  const status = await running.ended();
  if (status !== 0)
    throw new Error(`${program} ${args.join(' ')}: ${running.stdout()}${running.stderr()}`);
  return running.stdout();
}

const tool = (file: string, ...args: string[]) =>
  run(process.execPath, join('node_modules', file), ...args);

let service: TestService;
beforeAll(async () => {
  [service] = await Promise.all([
    testService(),
    run('npm', 'ci', '--prefer-offline', '--no-audit', '--no-fund'),
  ]);
});
afterAll(() => service?.close());

/** A request may omit what has a default. */
const options = ['--default-non-nullable=false'];

test('a generated client compiles under strict, and leads from an account to a measurement', async () => {
  const document = await (await fetch(`${service.url}/v2/openapi.json`)).text();
  await writeFile(join(directory, 'openapi.json'), document);
  const [shown = ''] = blocksOf(readProjectFile('docs/clients.md'), 'ts');
  await writeFile(join(directory, 'documented.ts'), shown);
  await tool('openapi-typescript/bin/cli.js', 'openapi.json', ...options, '-o', 'api.d.ts');
  await tool('typescript/bin/tsc');
  expect(JSON.parse(await run(process.execPath, 'journey.ts', service.url))).toEqual({
    state: 'pending',
    measured: [12.5],
    newest: 12.5,
    told: [{ eventName: 'Too warm', deviceName: 'Cold room', vals: [12.5] }],
    problem: expect.stringContaining('not-found') as string,
  });
});
