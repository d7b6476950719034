import type { Sql } from '../db/sql.ts';

export type ListedAccount = {
  email: string;
  accountUuid: string;
  createdTs: number;
  disabledTs: number | null;
  devices: number;
};

export async function listAccounts(sql: Sql): Promise<ListedAccount[]> {
  const { rows } = await sql.query<ListedAccount>(`
    select account.email, account.uuid as "accountUuid", account.created_at as "createdTs",
      account.disabled_at as "disabledTs",
      (select count(*) from device where device.account_id = account.id) as devices
    from account
    where removed_at is null
    order by account.email_normal
  `);
  return rows;
}

export async function listAccountIds(sql: Sql): Promise<number[]> {
  const { rows } = await sql.query<{ id: number }>(`
    select id
    from account
    where removed_at is null
    order by id
  `);
  return rows.map(({ id }) => id);
}

/** Whether anybody has an account yet. */
export async function hasAccounts(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ has: boolean }>(
    'select exists (select from account where removed_at is null) as has',
  );
  return rows[0]?.has === true;
}
