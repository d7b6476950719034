import { execFile } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { refuseEarlier } from '../../src/db/baseline.ts';
import { projectDir } from '../journeys/process.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { call } from './ask.ts';
import { refused } from './cases.ts';
import { compareAnswers } from './compare.ts';
import { embeddedIn } from './database.ts';
import { install } from './install.ts';
import { startProgram, writeConfig } from './program.ts';

// The way of docs/upgrading.md through 0.4.0, and back to it, with that version's own tree. A full clone has it in
// its history; its packages come from npm's cache or registry.
const run = promisify(execFile);

/** The version that the refusal of an earlier database names, and its commit. */
function readRefusal(): { version: string; commit: string } {
  try {
    const name = '000000_of-an-earlier-version';
    refuseEarlier({ applied: [{ name, programVersion: null, leastWriter: null }] });
  } catch (error) {
    const found = /start version (\S+) on it once \(commit (\w+)\)/.exec(String(error));
    if (found?.[1] && found[2]) return { version: found[1], commit: found[2] };
    throw error;
  }
  throw new Error('An earlier database is not refused.');
}
const bridge = readRefusal();
const isInHistory = await run('git', ['cat-file', '-e', bridge.commit], { cwd: projectDir }).then(
  () => true,
  () => false,
);

describe.runIf(isInHistory)(`the tree of ${bridge.version}`, () => {
  const dir = makeTemporaryDir();
  const tree = join(dir, 'tree');
  const configFile = () => writeConfig(dir, 'http://127.0.0.1:1/sms');

  beforeAll(async () => {
    await mkdir(tree);
    const archive = `git archive ${bridge.commit} | tar -x -C ${tree}`;
    await run('sh', ['-c', archive], { cwd: projectDir });
    await run('npm', ['ci', '--prefer-offline', '--no-audit', '--no-fund'], { cwd: tree });
  }, 600_000);
  afterAll(() => rm(dir, { recursive: true }));

  it.each(refused)(
    'takes an installation of $version to where this version continues',
    async (fixture) => {
      const { variables, remove } = await install(fixture, 'backup');
      const options = {
        variables,
        configFile: await configFile(),
        clockBehindMs: Date.now() - fixture.recordedTs,
        role: 'api',
      } as const;
      const between = await startProgram({ ...options, tree });
      await between.stop();
      const program = await startProgram(options);
      await compareAnswers(program.url, fixture);
      await program.stop();
      await remove();
    },
  );

  it('starts on a database that this version made, and this version starts on it again', async () => {
    const dataDir = join(dir, 'data');
    const options = { variables: { DATA_DIR: dataDir }, configFile: await configFile() };
    const account = { email: 'me@example.org', password: 'correct horse' };
    const first = await startProgram(options);
    await call(first.url, '/v2/accounts', { method: 'POST', body: account });
    await first.stop();
    const migrations = () =>
      embeddedIn(dataDir).runAlone(async (client) => {
        const { rows } = await client.query('select name, least_writer from public.migration');
        return rows;
      });
    const before = await migrations();
    for (const version of [{ tree }, {}]) {
      const program = await startProgram({ ...options, ...version });
      const { accountAuthToken: token } = await call<{ accountAuthToken: string }>(
        program.url,
        '/v2/accounts/login',
        {
          method: 'POST',
          body: account,
        },
      );
      const found = await call<{ email: string }>(program.url, '/v2/accounts', { token });
      expect(found.email).toBe(account.email);
      await program.stop();
    }
    expect(await migrations()).toEqual(before);
  });
});
