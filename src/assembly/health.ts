import type { Sql } from '../db/sql.ts';

/** Longer than a healthy answer takes, shorter than anybody waits for a status. */
const patienceMs = 1_000;

/** Whether something answers in time; never throws. */
export async function answers(ask: () => Promise<unknown>): Promise<boolean> {
  const { promise: tooLate, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), patienceMs);
  const answered = ask().then(
    () => true,
    () => false,
  );
  return Promise.race([answered, tooLate]).finally(() => clearTimeout(timer));
}

export const databaseAnswers = (db: Sql) => answers(() => db.query('select 1'));
