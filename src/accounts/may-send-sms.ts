import type { Sql } from '../db/sql.ts';

/** Whether SMS are sent for the account, where not for all. */
export async function maySendSms(sql: Sql, accountId: number): Promise<boolean> {
  const { rows } = await sql.query<{ may: boolean }>(
    'select may_send_sms as may from account where id = $1',
    [accountId],
  );
  return rows[0]?.may ?? false;
}

export async function allowSms(sql: Sql, accountId: number, may: boolean): Promise<void> {
  await sql.query('update account set may_send_sms = $2 where id = $1', [accountId, may]);
}
