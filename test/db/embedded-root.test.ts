import { chmodSync, cpSync, lstatSync, mkdirSync, readlinkSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';
import { findOwner } from '../../src/db/embedded/cluster.ts';
import {
  findPackagedPostgres,
  placePrograms,
  runProgram,
  sharedDir,
} from '../../src/db/embedded/programs.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { runOn } from '../support/template.ts';

const isRoot = process.getuid?.() === 0;
const dir = makeTemporaryDir();
const left: string[] = [dir];
afterAll(() => left.forEach((path) => rmSync(path, { recursive: true, force: true })));

describe.runIf(isRoot)('the embedded database as root', () => {
  it('puts its data where its user can reach them, reports that, and finds them again', async () => {
    // As below /root: other users may not enter.
    chmodSync(dir, 0o700);
    const dataDir = join(dir, 'data');
    const lines: string[] = [];
    const write = (_: object, line: string) => lines.push(line);
    const log = { info: write, warn: write };
    const first = await startEmbeddedDatabase({ dataDir, log });
    const link = join(dataDir, 'postgresql');
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    left.push(dirname(readlinkSync(link)));
    expect(lines.join('\n')).toContain(`went to ${sharedDir}`);
    await runOn(first.connectionString, (client) => client.query('create table kept (n int)'));
    await first.stop();
    const second = await startEmbeddedDatabase({ dataDir, log });
    await runOn(second.connectionString, (client) => client.query('select from kept'));
    await second.stop();
  });

  it('copies the programs where their user can run them', async () => {
    const hidden = join(makeHiddenDir(), 'native');
    const { dir: packaged } = findPackagedPostgres();
    cpSync(packaged, hidden, { recursive: true, verbatimSymlinks: true });
    const version = `test-${process.pid}`;
    left.push(join(sharedDir, `postgresql-${version}`));
    const programs = await placePrograms({ dir: hidden, version }, findOwner());
    expect(programs.moved).toBe(true);
    expect(await runProgram(programs, 'postgres', ['--version'])).toContain('PostgreSQL');
    const again = await placePrograms({ dir: hidden, version }, findOwner());
    expect(again.binDir).toBe(programs.binDir);
  });
});

function makeHiddenDir(): string {
  const hidden = join(makeTemporaryDir(), 'root');
  mkdirSync(hidden, { mode: 0o700 });
  left.push(dirname(hidden));
  return hidden;
}
