import { secretIdOf } from '../config/keys.ts';
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

/**
 * How many devices have not shown a token of another secret than these check values yet: their token is of one of
 * them, or nobody knows. Reads all devices.
 */
export async function countTokensOf(sql: Sql, checks: string[]): Promise<number> {
  if (checks.length === 0) return 0;
  const { rows } = await sql.query<{ count: number }>(
    `
      select count(*) as count
      from device
      where token_secret = any($1::text[]) and account_id is not null
    `,
    [[unknownSecret, ...checks.map(secretIdOf)]],
  );
  return rows[0]?.count ?? 0;
}

/** Devices of which nobody knows the secret have that one of now on. */
export async function noteUnknown(sql: Sql, secretId: string): Promise<void> {
  await sql.query('update device set token_secret = $1 where token_secret = $2', [
    secretId,
    unknownSecret,
  ]);
}

/** `device.token_secret` of a device that was registered before the database knew any secret. */
const unknownSecret = '';
/** That of a device whose secret was given up: it names none. */
export const givenUp = '-';

export async function deleteAllSessions(sql: Sql): Promise<void> {
  await sql.query('delete from session');
}
