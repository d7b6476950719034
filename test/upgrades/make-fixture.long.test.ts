import { rm, stat } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { version } from '../../src/version.ts';
import { runProgram } from '../journeys/process.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { filesIn, readFixtureIn } from './fixture.ts';

// A version is finished on the day of its release, which is too late to find that its fixture cannot be made.

let dir: string;
beforeAll(() => {
  dir = makeTemporaryDir();
});
afterAll(() => rm(dir, { recursive: true }));

it("can make this version's fixture: asks every route and leaves no table empty", async () => {
  const running = runProgram(process.execPath, ['test/upgrades/make-fixture.ts', '--to', dir]);
  // It fails if a route has nothing to answer or a table has no rows.
  expect(await running.ended(), running.stderr()).toBe(0);
  const files = filesIn(dir);
  expect(await readFixtureIn(files)).toMatchObject({ version });
  for (const file of [files.backup, files.portable, files.rows])
    expect((await stat(file)).size).toBeGreaterThan(0);
});
