import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';

export type TooMuch = {
  /** Rows that one answer has at most. */
  most: number;
  /** What the rows are: `points`. */
  what: string;
  /** What to ask for instead. */
  instead: string;
};

/**
 * Throws `invalid-input` where a select has more rows than one answer, by the planner's estimate: counting them would
 * take as long as reading them.
 */
export async function refuseTooMuch(
  sql: Sql,
  select: { text: string; values: unknown[] },
  { most, what, instead }: TooMuch,
): Promise<void> {
  const { rows } = await sql.query<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(
    `explain (format json) ${select.text}`,
    select.values,
  );
  const found = rows[0]?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0;
  if (found <= most) return;
  const message = `these are about ${found} ${what}, and an answer has ${most} at most: ask for ${instead}`;
  throw new DomainError('invalid-input', 'This is more than one answer has.', {
    problems: [{ path: 'start', message }],
  });
}
