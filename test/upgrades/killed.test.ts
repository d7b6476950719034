import { readdirSync } from 'node:fs';
import { parse } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { databaseKinds } from '../harness/database.ts';
import type { Running } from '../journeys/process.ts';
import { until } from './ask.ts';
import { compareAnswers } from './compare.ts';
import { listFixtures, readFixture, type Fixture } from './fixture.ts';
import { cutOff, findHeld, holdSteps, lockOut, releaseSteps } from './hold.ts';
import { install, type Installation, type InstallationKind } from './install.ts';
import { runService, whenReady, writeConfig } from './program.ts';
import { findSchema } from './rows.ts';

const kinds: InstallationKind[] = ['backup', ...databaseKinds];
const present = readdirSync(new URL('../../src/db/migrations/', import.meta.url))
  .map((file) => parse(file).name)
  .toSorted();
const pendingOf = ({ migrations }: Fixture) => present.slice(migrations.length);

const fixtures = await Promise.all(listFixtures().map(readFixture));
// A version whose schema is the present one has no step to be killed in.
const cases = fixtures
  .filter((fixture) => pendingOf(fixture).length > 0)
  .flatMap((fixture) => kinds.map((kind) => ({ version: fixture.version, fixture, kind })));

it('there is a version whose upgrade has steps', () => {
  expect(cases).not.toEqual([]);
});

/** A start for each step, and one more. */
const slow = { timeout: 300_000 };

let installation: Installation | null = null;
const started: Running[] = [];
afterEach(async () => {
  for (const { child, ended } of started.splice(0)) {
    child.kill('SIGKILL');
    await ended();
  }
  await installation?.remove();
});

describe.each(cases)('an upgrade of $version, from $kind', ({ fixture, kind }) => {
  it('that is killed in each of its steps is taken up by the next start', slow, async () => {
    installation = await install(fixture, kind);
    const { database, dir, variables } = installation;
    const configFile = await writeConfig(dir, 'http://127.0.0.1:1/sms');
    const clockBehindMs = Date.now() - fixture.recordedTs;
    const start = () => {
      const running = runService({ variables, configFile, clockBehindMs, role: 'api' });
      started.push(running);
      return running;
    };

    await holdSteps(database);
    const killed: string[] = [];
    let running = start();
    for (;;) {
      const step = await findStep(running, installation);
      if (step === null) break;
      running.child.kill('SIGKILL');
      await running.ended();
      await cutOff(database, step);
      // It was under way, and nothing of it is there.
      expect(await listMigrations(installation)).not.toContain(step);
      if (step === lockOut) expect(await database.run(findSchema)).toBe('public');
      killed.push(step);
      running = start();
    }

    const { url, stop } = await whenReady(running);
    await releaseSteps(database);
    expect(killed).toEqual(await listExpected(installation, fixture));
    await compareAnswers(url, fixture);
    await stop();
  });
});

/** Where a program that was started is held; null when it is ready instead. */
async function findStep(running: Running, { database }: Installation): Promise<string | null> {
  return until('a step of the migration, or its end', async () => {
    if (running.child.exitCode !== null) throw new Error(`It ended: ${running.stderr()}`);
    if (running.stdout().includes('"Ready."')) return { step: null };
    // The embedded server is not there at once.
    const step = await findHeld(database).catch(() => null);
    return step === null ? null : { step };
  }).then(({ step }) => step);
}

async function listMigrations({ database }: Installation): Promise<string[]> {
  const { rows } = await database.run((client) =>
    client.query<{ name: string }>('select name from public.migration order by id'),
  );
  return rows.map(({ name }) => name);
}

/** Every migration that the earlier version has not, behind the move of its tables if they moved. */
async function listExpected(installed: Installation, fixture: Fixture): Promise<string[]> {
  const pending = pendingOf(fixture);
  expect(await listMigrations(installed)).toEqual([...fixture.migrations, ...pending]);
  const moved = (await installed.database.run(findSchema)) !== 'public';
  return [...(moved ? [lockOut] : []), ...pending];
}
