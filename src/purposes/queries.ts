import type { Purpose } from '../core/purpose.ts';
import type { Sql } from '../db/sql.ts';

/** The new purpose's identifier; null where the account is gone. */
export async function insertPurpose(
  db: Sql,
  accountId: number,
  purpose: Purpose,
): Promise<string | null> {
  const { rows } = await db.query<{ id: string }>(
    `
      insert into purpose (account_id, name, body)
      select id, $2, $3::text::json from account where id = $1
      returning id`,
    [accountId, nameOf(purpose), JSON.stringify(purpose)],
  );
  return rows[0]?.id ?? null;
}

/** In the order of their registration. */
export async function listPurposes(
  db: Sql,
  accountId: number,
): Promise<{ id: string; name: string }[]> {
  const { rows } = await db.query<{ id: string; name: string }>(
    'select id, name from purpose where account_id = $1 order by created_at, id',
    [accountId],
  );
  return rows;
}

/** Null when the account has no such purpose. */
export async function findPurpose(
  db: Sql,
  accountId: number,
  purposeId: string,
): Promise<Purpose | null> {
  const { rows } = await db.query<{ body: Purpose }>(
    'select body from purpose where id = $2 and account_id = $1',
    [accountId, purposeId],
  );
  return rows[0]?.body ?? null;
}

/** False when the account has no such purpose. */
export async function updatePurpose(
  db: Sql,
  accountId: number,
  purposeId: string,
  purpose: Purpose,
): Promise<boolean> {
  const { rowCount } = await db.query(
    'update purpose set name = $3, body = $4::text::json where id = $2 and account_id = $1',
    [accountId, purposeId, nameOf(purpose), JSON.stringify(purpose)],
  );
  return rowCount === 1;
}

/** False when the account has no such purpose. Installed profiles keep their copy. */
export async function deletePurpose(
  db: Sql,
  accountId: number,
  purposeId: string,
): Promise<boolean> {
  const { rowCount } = await db.query('delete from purpose where id = $2 and account_id = $1', [
    accountId,
    purposeId,
  ]);
  return rowCount === 1;
}

/** PostgreSQL's text holds every character but NUL. */
const nameOf = ({ name }: Purpose) => (name ?? '').replaceAll('\0', '\uFFFD');
