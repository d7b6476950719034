import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import type { Running } from '../journeys/process.ts';
import { until } from './ask.ts';
import { makeLaterMigrations } from '../support/tomorrow.ts';
import { pendingOf, upgradeCases } from './cases.ts';
import { compareAnswers } from './compare.ts';
import { cutOff, findHeld, holdSteps, releaseSteps } from './hold.ts';
import { install, type Installation } from './install.ts';
import { runMigration, runService, whenReady, writeConfig } from './program.ts';
import { findSchema } from './rows.ts';

// A separate server comes first: each start of the embedded one includes a recovery.
const cases = upgradeCases.toSorted(
  (a, b) => Number(a.kind !== 'postgresql') - Number(b.kind !== 'postgresql'),
);

/** Migrations to test with, because the present version may have none that a released one lacks. */
const later = [
  { name: '900001_first', sql: 'create table of_tomorrow (n integer)' },
  { name: '900002_second', sql: 'alter table device add column of_tomorrow integer default 1' },
].map((each) => ({ ...each, leastWriter: '0.2.0' }));

/** One start for each step, and one more. */
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
  it('continues with the next start after it was killed in each of its steps', slow, async () => {
    installation = await install(fixture, kind);
    const { dir: migrationsDir, remove } = makeLaterMigrations(later);
    onTestFinished(remove);
    const { database, dir, variables } = installation;
    const configFile = await writeConfig(dir, 'http://127.0.0.1:1/sms');
    const clockBehindMs = Date.now() - fixture.recordedTs;
    const pending = [...pendingOf(fixture), ...later].map(({ name }) => name);
    // Only serves requests, so that nothing changes before the comparison.
    const role = 'api' as const;
    const options = { variables, configFile, clockBehindMs, migrationsDir, role };
    const start = (run: typeof runService) => {
      const running = run(options);
      started.push(running);
      return running;
    };

    const from = await database.runAlone(findSchema);
    await holdSteps(database);
    for (const expected of pending) {
      const running = start(runMigration);
      const step = await findStep(running, installation);
      expect(step).toBe(expected);
      running.child.kill('SIGKILL');
      await running.ended();
      await cutOff(database, step);
      // The step was in progress, and none of it remains.
      expect(await listMigrations(installation)).not.toContain(step);
    }
    const last = start(runMigration);
    expect(await last.ended(), last.stderr()).toBe(0);

    const { url, stop } = await whenReady(start(runService));
    await releaseSteps(database);
    expect(await listMigrations(installation)).toEqual([...fixture.migrations, ...pending]);
    expect(await database.run(findSchema)).toBe(from);
    await compareAnswers(url, fixture);
    await stop();
  });
});

/** The step at which a running program is held. */
async function findStep(running: Running, { database }: Installation): Promise<string> {
  return until('a step of the migration', async () => {
    if (running.child.exitCode !== null) throw new Error(`It ended: ${running.stderr()}`);
    // The embedded server takes a moment to start.
    return findHeld(database).catch(() => null);
  });
}

async function listMigrations({ database }: Installation): Promise<string[]> {
  const { rows } = await database.run((client) =>
    client.query<{ name: string }>('select name from public.migration order by id'),
  );
  return rows.map(({ name }) => name);
}
