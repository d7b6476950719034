import { execFile } from 'node:child_process';
import { appendFile, cp, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { writeBuild } from '../../src/console/build/write.ts';
import { projectDir } from '../journeys/process.ts';
import { consoleService } from './service.ts';

const run = promisify(execFile);

/** A copy of the project with one source changed, so that no build of it exists. */
async function copyProject(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'console-cold-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await cp(join(projectDir, 'src'), join(dir, 'src'), { recursive: true });
  await cp(join(projectDir, 'package.json'), join(dir, 'package.json'));
  await symlink(join(projectDir, 'node_modules'), join(dir, 'node_modules'));
  await appendFile(join(dir, 'src/console/web/main.tsx'), '// Cold.\n');
  return dir;
}

test('a cold start builds the page in seconds, in a process of its own', async () => {
  const dir = await copyProject();
  const startedMs = performance.now();
  const args = ['src/console/build/main.ts', '--dir', join(dir, 'built')];
  const { stdout } = await run(process.execPath, args, { cwd: dir });
  const seconds = (performance.now() - startedMs) / 1_000;
  console.log(`A cold build of the console took ${seconds.toFixed(1)} s.`);
  // Less than three on two idle cores.
  expect(seconds).toBeLessThan(30);
  expect(await readdir(stdout)).toContain('index.html.br');
});

test('earlier builds stay for services that still serve them, at most ten', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'sensorium-builds-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const files = [{ name: 'index.html', content: '<p>', type: 'text/html' }];
  for (let n = 100; n < 113; n += 1) await writeBuild({ dir, hash: String(n), mode: 0o700 }, files);
  const expected = Array.from({ length: 11 }, (_, n) => String(102 + n));
  expect((await readdir(dir)).toSorted()).toEqual(expected);
});

test('the service does not load the bundler into its memory', async () => {
  const service = await consoleService();
  onTestFinished(() => service.close());
  const page = () => fetch(`${service.url}/console/`);
  await expect.poll(async () => (await page()).status).toBe(200);
  expect(await readFile('/proc/self/maps', 'utf8')).not.toMatch(/rolldown/);
});
