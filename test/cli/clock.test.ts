import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { runProgram } from '../journeys/process.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

// The programs themselves, as an operator runs them beside the service.
describe.each(databaseKinds)("an operator's commands for time and history, on %s", (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  beforeEach(() => database.db.query('truncate believed_time, history_retention'));
  afterAll(() => database.drop());

  async function run(name: 'clock' | 'retention', ...args: string[]) {
    const env = {
      DATABASE_URL: database.url,
      SECRET: 'a secret that only this test knows, long enough',
    };
    const program = runProgram(process.execPath, [`src/cli/${name}.ts`, ...args], { env });
    const status = await program.ended();
    return { status, lines: program.stdout().trimEnd().split('\n'), stderr: program.stderr() };
  }
  const readBelief = async () => {
    const { rows } = await database.db.query<{ doubted: boolean; behindMs: number }>(
      `select doubted_at is not null as doubted,
              extract(epoch from service_now() - reckoned_at)::float8 * 1000 as "behindMs"
         from believed_time`,
    );
    return rows[0];
  };
  const believe = (behindMs: number, isDoubted: boolean) =>
    database.db.query(
      `insert into believed_time (reckoned_at, doubted_at)
       select at, case when $2 then at end
         from (select service_now() - $1 * interval '1 millisecond' as at) as b`,
      [behindMs, isDoubted],
    );

  test('npm run clock says what time it is, and whether any process has checked it', async () => {
    const { status, lines, stderr } = await run('clock');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(lines[0]).toMatch(/^The service's clock says \d{4}-\d\d-\d\dT[\d:.]+Z\.$/);
    expect(lines[1]).toMatch(/^No process has checked it yet/);
    await believe(0, false);
    expect((await run('clock', 'status')).lines[1]).toMatch(
      /^The clock is trusted. It was last checked at /,
    );
  });

  test('npm run clock -- believe ends a doubt, or says that there was none', async () => {
    await believe(365 * dayMs, true);
    const doubted = await run('clock');
    expect(doubted.lines[1]).toMatch(
      /^The clock has been in doubt since .*: nothing is deleted by it\.$/,
    );
    expect(doubted.lines.at(-1)).toContain('npm run clock -- believe');
    const believed = await run('clock', 'believe');
    expect(believed.status).toBe(0);
    expect(believed.lines[0]).toMatch(/Z is now trusted\.$/);
    expect(await readBelief()).toMatchObject({ doubted: false });
    expect((await readBelief())?.behindMs).toBeLessThan(hourMs);
    expect((await run('clock', 'believe')).lines[0]).toMatch(/; it was not in doubt\.$/);
  });

  test('npm run retention says what a shorter setting will delete, and when; apply does not wait', async () => {
    expect((await run('retention')).lines).toEqual([
      'measurements: no retention is in force yet; 90 days are configured here.',
      'events: no retention is in force yet; 365 days are configured here.',
    ]);
    await database.db.query(
      `insert into history_retention (what, days, next_days, next_at)
       values ('events', 365, 30, service_now() + interval '20 hours'), ('measurements', null, null, null)`,
    );
    const told = await run('retention');
    expect(told).toMatchObject({ status: 0, stderr: '' });
    expect(told.lines[0]).toBe('measurements: everything in force; 90 days are configured here.');
    expect(told.lines[1]).toBe('events: 365 days in force; 365 days are configured here.');
    expect(told.lines[2]).toMatch(/^ {2}30 days from \d{4}-.*Z: deletes about 0 events/);
    const applied = await run('retention', 'apply');
    expect(applied).toMatchObject({ status: 0, stderr: '' });
    expect(applied.lines[0]).toBe('events: now 30 days, previously 365 days.');
    expect((await run('retention')).lines[1]).toMatch(/^events: 30 days in force/);
    expect((await run('retention', 'apply')).lines).toEqual([
      'No shorter retention is pending: nothing was changed.',
    ]);
  });

  test.each(['clock', 'retention'] as const)(
    'npm run %s refuses what it does not know',
    async (name) => {
      const { status, stderr } = await run(name, 'beleive');
      expect(status).toBe(2);
      expect(stderr).toContain('beleive');
      expect(stderr).toContain(`npm run ${name}`);
      expect(await readBelief()).toBeUndefined();
    },
  );
});
