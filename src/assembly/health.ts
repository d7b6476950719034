import type { Sql } from '../db/sql.ts';

/** Longer than a healthy answer takes, shorter than anybody waits for a status. */
const patienceMs = 1_000;

/** Whether something answers in time; never throws. */
export async function answers(ask: () => Promise<unknown>): Promise<boolean> {
  return (await answerOf(() => ask().then(() => true))) ?? false;
}

/** What something answers in time; null where it does not. Never throws. */
export async function answerOf<T>(ask: () => Promise<T>): Promise<T | null> {
  const { promise: tooLate, resolve } = Promise.withResolvers<null>();
  const timer = setTimeout(() => resolve(null), patienceMs);
  const answered = ask().catch(() => null);
  return Promise.race([answered, tooLate]).finally(() => clearTimeout(timer));
}

export const databaseAnswers = (db: Sql) => answers(() => db.query('select 1'));
