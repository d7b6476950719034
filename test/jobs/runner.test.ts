import { afterAll, beforeAll, expect, test } from 'vitest';
import defaults from '../../config/default.ts';
import { monotonicClock } from '../../src/lib/clock.ts';
import { createStartJob, type DoPiece, startJobRunner } from '../../src/jobs/jobs.ts';
import { openTestDatabase, testDatabase, type TestDatabase } from '../support/database.ts';
import type { Database } from '../../src/db/database.ts';

let database: TestDatabase;
/** Its statements are cancelled after this time, as a removal of too much is. */
let hasty: Database;
beforeAll(async () => {
  database = await testDatabase();
  hasty = openTestDatabase(database.url, { statementTimeoutMs: 1_000 });
});
afterAll(async () => {
  await hasty?.close();
  await database?.drop();
});

async function newJob(count: number): Promise<{ jobId: string; devices: string[] }> {
  const { rows } = await database.db.query<{ id: number }>(
    `insert into account (email, password_hash) values (gen_random_uuid() || '@example.org', '')
     returning id`,
  );
  const devices = Array.from({ length: count }, () => crypto.randomUUID());
  const start = createStartJob({
    db: database.db,
    limitsOf: () => defaults.quotas,
    believedTs: Date.now,
    onStarted: () => undefined,
  });
  const job = {
    accountId: rows[0]?.id ?? 0,
    keyId: null,
    action: { action: 'unmute' },
    labels: null,
    actor: { by: 'operator', sessionId: null, address: null } as never,
    select: async () => ({ devices }),
    ts: Date.now(),
    now: Date.now,
  };
  const { jobId } = await start(job, null);
  return { jobId, devices };
}

const jobOf = async (jobId: string) => {
  const { rows } = await database.db.query<{ state: string; done: number; failed: unknown }>(
    'select state, done, failed from job where uuid = $1',
    [jobId],
  );
  return rows[0];
};

test('a piece that takes too long lets others go first, is halved, and ends with the failed device', async () => {
  const slow = await newJob(20);
  const other = await newJob(3);
  const [bad = ''] = slow.devices.slice(6, 7);
  const pieces: { job: 'slow' | 'other'; count: number }[] = [];
  const doPiece: DoPiece = async (tx, { uuids }) => {
    const isSlow = uuids.some((uuid) => slow.devices.includes(uuid));
    pieces.push({ job: isSlow ? 'slow' : 'other', count: uuids.length });
    if (uuids.includes(bad)) await tx.query('select pg_sleep(60)');
    return { failed: [] };
  };
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const runner = startJobRunner({ db: hasty, doPiece, monotonicClock, onError, pollMs: 20 });
  const states = async () => [(await jobOf(slow.jobId))?.state, (await jobOf(other.jobId))?.state];
  await expect.poll(states, { timeout: 60_000 }).toEqual(['done', 'done']);
  await runner.close();
  expect(await jobOf(slow.jobId)).toEqual({
    state: 'done',
    done: 20,
    failed: [{ deviceAuthUuid: bad, reason: 'took-too-long' }],
  });
  expect(await jobOf(other.jobId)).toMatchObject({ done: 3, failed: [] });
  // The first was cancelled, and the other job came before its second attempt.
  expect(pieces.slice(0, 3)).toEqual([
    { job: 'slow', count: 20 },
    { job: 'other', count: 3 },
    { job: 'slow', count: 10 },
  ]);
  // Halves until the device is alone (20, 10, 5; 5 done; 10, 5, 2, …), and tries that one three times.
  const alone = pieces.filter(({ job, count }) => job === 'slow' && count === 1);
  expect(alone.length).toBeGreaterThanOrEqual(3);
  expect(errors.length).toBeGreaterThanOrEqual(5);
});

test('a job whose account somebody else works on lets others go first, and no device counts as failed', async () => {
  const { db } = database;
  const waiting = await newJob(2);
  const other = await newJob(2);
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const counts: number[] = [];
  const doPiece: DoPiece = async (_tx, { uuids }) => {
    counts.push(uuids.length);
    return { failed: [] };
  };
  // No statement ends by itself.
  const patient = openTestDatabase(database.url, { statementTimeoutMs: 600_000 });
  const isDone = async (jobId: string) => (await jobOf(jobId))?.state === 'done';
  let runner: ReturnType<typeof startJobRunner> | undefined;
  try {
    await db.transaction(async (tx) => {
      await tx.query(
        `select from account_usage
          where account_id = (select account_id from job where uuid = $1) for update`,
        [waiting.jobId],
      );
      runner = startJobRunner({ db: patient, doPiece, monotonicClock, onError, pollMs: 20 });
      await expect.poll(() => isDone(other.jobId), { timeout: 10_000 }).toBe(true);
      expect(await isDone(waiting.jobId)).toBe(false);
    });
    await expect.poll(() => isDone(waiting.jobId), { timeout: 60_000 }).toBe(true);
  } finally {
    await runner?.close();
    await patient.close();
  }
  expect([errors, counts]).toEqual([[], [2, 2]]);
});

test('a job whose account is disabled after the job was found rests all the same', async () => {
  const { db } = database;
  const resting = await newJob(2);
  const doPiece: DoPiece = async () => ({ failed: [] });
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const setDisabled = (to: string) =>
    db.query(
      `update account set disabled_at = ${to}
        where id = (select account_id from job where uuid = $1)`,
      [resting.jobId],
    );
  let runner: ReturnType<typeof startJobRunner> | undefined;
  await db.transaction(async (tx) => {
    // The lock that the runner takes between finding the job and reading its next piece.
    await tx.query(
      `select from account_usage
        where account_id = (select account_id from job where uuid = $1) for update`,
      [resting.jobId],
    );
    runner = startJobRunner({ db, doPiece, monotonicClock, onError, pollMs: 20 });
    const waiting = async () => {
      const { rowCount } = await db.query(
        `select from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`,
      );
      return rowCount;
    };
    await expect.poll(waiting).toBe(1);
    await setDisabled('now()');
  });
  const other = await newJob(1);
  const stateOf = async ({ jobId }: { jobId: string }) => (await jobOf(jobId))?.state;
  await expect.poll(() => stateOf(other)).toBe('done');
  expect(await jobOf(resting.jobId)).toMatchObject({ done: 0, state: 'running' });
  await setDisabled('null');
  await expect.poll(() => stateOf(resting)).toBe('done');
  await runner?.close();
  expect(errors).toEqual([]);
});
