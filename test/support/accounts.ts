import type { Sql } from '../../src/db/sql.ts';

/** Inserts an account that nobody can log in to. Returns its number. */
export async function insertAccount(db: Sql): Promise<number> {
  const { rows } = await db.query<{ id: number }>(
    `insert into account (email, password_hash) values (gen_random_uuid() || '@example.org', '')
     returning id`,
  );
  return rows[0]?.id ?? 0;
}
