import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Client } from 'pg';
import { readOptionsOrExit } from '../../src/cli/read-options.ts';
import { version } from '../../src/version.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { projectDir } from '../journeys/process.ts';
import { pack } from './archive.ts';
import { embeddedIn } from './database.ts';
import { filesOf, writeFixture, type Fixture } from './fixture.ts';
import { startProgram, writeConfig, type Program, type ProgramOptions } from './program.ts';
import { startReceiver } from './receiver.ts';
import { record } from './record.ts';
import { dumpRows } from './rows.ts';
import { setScene, type Scene } from './scene/scene.ts';

// Makes the fixture of the present version: an installation, what it answers, a backup of it, and its
// rows as SQL. Later versions are tested with it, so it is made once, when the version is done.

const usage = `Usage: npm run fixture

Makes the fixture of ${version} in ${filesOf(version).dir}:
an installation, what it answers, a backup of it, and its rows as SQL. One that is there is made again.`;
readOptionsOrExit(usage, {}, () => null);

const dir = makeTemporaryDir();
const running: Program[] = [];
try {
  await makeFixture();
} finally {
  await Promise.all(running.map((program) => program.stop()));
  await rm(dir, { recursive: true, force: true });
}

async function start(options: ProgramOptions): Promise<Program> {
  const program = await startProgram(options);
  running.push(program);
  return program;
}

async function makeFixture(): Promise<void> {
  const files = filesOf(version);
  const variables = { DATA_DIR: join(dir, 'data') };
  const receiver = await startReceiver();
  const configFile = await writeConfig(dir, receiver.url);
  const whole = await start({ variables, configFile });
  const scene = await setScene(whole, receiver);
  await running.pop()?.stop();
  // Only serves requests: nothing changes while it is looked at and copied.
  const quiet = await start({ variables, configFile, role: 'api' });
  const fixture = await takeAnswers(quiet.url, scene);
  const database = embeddedIn(variables.DATA_DIR);
  fixture.migrations = await database.run(listMigrations);
  await mkdir(files.dir, { recursive: true });
  await writeFile(files.rows, await database.run(dumpRows));
  await backUp(variables, join(dir, 'backup'));
  await pack(join(dir, 'backup'), files.backup);
  await writeFixture(fixture);
  console.log(`Made ${files.dir}: ${fixture.answers.length} answers.`);
}

async function takeAnswers(url: string, { pIds, ...scene }: Scene): Promise<Fixture> {
  const uuids = scene.devices.map(({ uuid }) => uuid);
  const answers = await record(url, { accounts: scene.accounts, uuids, pIds });
  return { version, recordedTs: Date.now(), migrations: [], ...scene, answers };
}

/** As a user makes one. */
async function backUp(variables: Record<string, string>, to: string): Promise<void> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: dir, ...variables };
  const options = { cwd: projectDir, env };
  await promisify(execFile)(process.execPath, ['src/cli/backup.ts', to], options);
}

async function listMigrations(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>('select name from migration order by id');
  return rows.map(({ name }) => name);
}
