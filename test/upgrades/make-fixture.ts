import { execFile } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Client } from 'pg';
import { readOptionsOrExit } from '../../src/cli/command-line.ts';
import { version } from '../../src/version.ts';
import { projectDir } from '../journeys/process.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { startHookReceiver } from '../support/hook-receiver.ts';
import { startMailServer } from '../support/smtp.ts';
import { pack } from './archive.ts';
import { embeddedIn } from './database.ts';
import { filesIn, filesOf, writeFixture, type Fixture } from './fixture.ts';
import { startProgram, writeConfig, type Program, type ProgramOptions } from './program.ts';
import { startReceiver } from './receiver.ts';
import { record } from './record.ts';
import { dumpRows, expectRowsInEach } from './rows.ts';
import { setScene, type Scene } from './scene/scene.ts';

// Makes the fixture of the present version: an installation, its answers, a backup and a portable copy of it, and its
// rows as SQL. Later versions are tested with it, so it is made once, when the version is finished.

const usage = `Usage: npm run fixture [-- --to DIRECTORY]

Makes the fixture of ${version} in ${filesOf(version).dir}, or in DIRECTORY: an
installation, its answers, a backup and a portable copy of it, and its rows as SQL. Replaces an existing fixture.`;
const files = readOptionsOrExit(usage, { to: { type: 'string' } }, ({ to }) =>
  to === undefined ? filesOf(version) : filesIn(resolve(to)),
);

const dir = makeTemporaryDir();
const variables = { DATA_DIR: join(dir, 'data') };
/** What must still be stopped, the newest last. */
const running: (() => Promise<unknown>)[] = [];
try {
  await makeFixture();
} finally {
  for (const stop of running.toReversed()) await stop();
  await rm(dir, { recursive: true, force: true });
}

async function start(options: Omit<ProgramOptions, 'variables'>, more = {}): Promise<Program> {
  const program = await startProgram({ ...options, variables: { ...variables, ...more } });
  running.push(() => program.stop());
  return program;
}

async function makeFixture(): Promise<void> {
  const receiver = await startReceiver();
  const mail = await startMailServer();
  running.push(() => mail.close());
  const hooks = await startHookReceiver();
  running.push(() => hooks.close());
  const configFile = await writeConfig(dir, receiver.url);
  // It ran before, and then nobody listened for two minutes.
  await start({ configFile, clockBehindMs: 120_000 });
  await running.pop()?.();
  const whole = await start({ configFile }, { SMTP_URL: mail.url });
  const scene = await setScene(whole, { receiver, mail, hooks, runAccount });
  await running.pop()?.();
  // Only serves requests, so that nothing changes while it is examined and copied.
  const quiet = await start({ configFile, role: 'api' });
  const fixture = await takeAnswers(quiet.url, scene);
  const database = embeddedIn(variables.DATA_DIR);
  fixture.migrations = await database.run(listMigrations);
  await database.run(expectRowsInEach);
  await mkdir(files.dir, { recursive: true });
  await writeFile(files.rows, await database.run(dumpRows));
  await runTool('backup', join(dir, 'backup'));
  await pack(join(dir, 'backup'), files.backup);
  await runTool('backup', '--portable', join(dir, 'copy'));
  await pack(join(dir, 'copy'), files.portable);
  await writeFixture(fixture, files);
  console.log(`Made ${files.dir}: ${fixture.answers.length} answers.`);
}

async function takeAnswers(url: string, { pIds, ...scene }: Scene): Promise<Fixture> {
  const uuids = scene.devices.map(({ uuid }) => uuid);
  const answers = await record(url, { accounts: scene.accounts, uuids, pIds });
  return { version, recordedTs: Date.now(), migrations: [], ...scene, answers };
}

/** `npm run account -- …` beside the running service. */
async function runAccount(...args: string[]): Promise<void> {
  await runTool('account', ...args);
}

/** Runs a command as an operator does. */
async function runTool(name: 'account' | 'backup', ...args: string[]): Promise<void> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: dir, ...variables };
  const options = { cwd: projectDir, env };
  await promisify(execFile)(process.execPath, [`src/cli/${name}.ts`, ...args], options);
}

async function listMigrations(client: Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>('select name from migration order by id');
  return rows.map(({ name }) => name);
}
