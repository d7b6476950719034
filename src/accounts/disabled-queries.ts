import type { Sql } from '../db/sql.ts';

export async function listDisabledIds(sql: Sql): Promise<number[]> {
  const { rows } = await sql.query<{ id: number }>({
    name: 'disabled-accounts',
    text: 'select id from account where disabled_at is not null',
    values: [],
  });
  return rows.map(({ id }) => id);
}

/** False when it was so before. `disabledTs` in ms; null lets the account in again. */
export async function setDisabled(
  sql: Sql,
  accountId: number,
  disabledTs: number | null,
): Promise<boolean> {
  const { rowCount } = await sql.query(
    `
      update account
      set disabled_at = ms_to_timestamp($2)
      where id = $1 and (disabled_at is null) <> ($2::bigint is null)
    `,
    [accountId, disabledTs],
  );
  return rowCount === 1;
}
