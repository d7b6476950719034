import { afterEach, describe, expect, it } from 'vitest';
import type { Running } from '../journeys/process.ts';
import { until } from './ask.ts';
import { migratingCases, pendingOf } from './cases.ts';
import { compareAnswers } from './compare.ts';
import { cutOff, findHeld, holdSteps, lockOut, releaseSteps } from './hold.ts';
import { install, type Installation } from './install.ts';
import { runMigration, runService, whenReady, writeConfig } from './program.ts';
import { findSchema } from './rows.ts';

// A server that stands first: each start of the embedded one is a recovery besides.
const cases = migratingCases.toSorted(
  (a, b) => Number(a.kind !== 'postgresql') - Number(b.kind !== 'postgresql'),
);

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
    const pending = pendingOf(fixture).map(({ name }) => name);
    const killed: string[] = [];
    // The whole service in the first and the last step, and to take up what is left after all of them.
    const start = () => {
      const isBetween = killed.length > 0 && killed.length < pending.length - 1;
      const run = isBetween ? runMigration : runService;
      const running = run({ variables, configFile, clockBehindMs, role: 'api' });
      started.push(running);
      return running;
    };

    const from = await database.runAlone(findSchema);
    await holdSteps(database);
    let running = start();
    for (;;) {
      const step = await findStep(running, installation);
      if (step === null) break;
      running.child.kill('SIGKILL');
      await running.ended();
      await cutOff(database, step);
      // It was under way, and nothing of it is there.
      expect(await listMigrations(installation)).not.toContain(step);
      if (step === lockOut) expect(await database.run(findSchema)).toBe(from);
      killed.push(step);
      running = start();
    }

    const { url, stop } = await whenReady(running);
    await releaseSteps(database);
    expect(await listMigrations(installation)).toEqual([...fixture.migrations, ...pending]);
    // Only 0.1.0 had its tables in `public`: they move table by table, which is a step of its own.
    const moved = from === 'public' && (await database.run(findSchema)) !== from;
    expect(killed).toEqual([...(moved ? [lockOut] : []), ...pending]);
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
