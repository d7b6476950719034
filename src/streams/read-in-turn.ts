import type { Sql } from '../db/sql.ts';
import type { Exports } from '../quotas/exports.ts';

export type ReadInTurn = Pick<Exports, 'page'>;

/** Each query of it waits for the account's turn among all that read much. */
export function readInTurn(exports: ReadInTurn, accountId: number, db: Sql): Sql {
  return {
    query: (...args: Parameters<Sql['query']>) => exports.page(accountId, () => db.query(...args)),
  } as Sql;
}
