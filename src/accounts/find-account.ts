import type { Sql } from '../db/sql.ts';
import { accountColumns, type AccountRow } from './queries.ts';

/** Null when there is no such account. */
export async function findAccount(
  sql: Sql,
  by: { uuid: string } | { accountId: number },
): Promise<AccountRow | null> {
  const [where, value] = 'uuid' in by ? ['uuid', by.uuid] : ['id', by.accountId];
  const { rows } = await sql.query<AccountRow>(
    `select ${accountColumns} from account where ${where} = $1`,
    [value],
  );
  return rows[0] ?? null;
}
