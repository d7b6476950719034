import type { Sql } from '../db/sql.ts';

/** What depends on the secret. `sessions`: those in the database, not those in Redis. */
export type Dependents = { devices: number; sessions: number };

/** Until the transaction ends no other process stores a check value; reading is not blocked. */
export async function lockChecks(sql: Sql): Promise<void> {
  await sql.query('lock table secret_check in exclusive mode');
}

/** Newest first. */
export async function listChecks(sql: Sql): Promise<string[]> {
  const { rows } = await sql.query<{ value: string }>(`
    select value
    from secret_check
    order by place, value
  `);
  return rows.map(({ value }) => value);
}

/** Stores exactly these, newest first; others are removed. */
export async function replaceChecks(sql: Sql, checks: string[]): Promise<void> {
  await sql.query(
    `
      delete from secret_check
      where value <> all ($1::text[])
    `,
    [checks],
  );
  await sql.query(
    `
      insert into secret_check (value, place)
      select value, place
      from unnest($1::text[]) with ordinality as noted (value, place)
      on conflict (value) do update set place = excluded.place
    `,
    [checks],
  );
}

export async function countDependents(sql: Sql): Promise<Dependents> {
  const { rows } = await sql.query<Dependents>(`
    select
      (select count(*) from device) as devices,
      (select count(*) from session where expires_at > now()) as sessions
  `);
  return rows[0] ?? { devices: 0, sessions: 0 };
}

export async function deleteAllSessions(sql: Sql): Promise<void> {
  await sql.query('delete from session');
}
