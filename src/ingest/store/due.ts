import { plainArray } from '../../db/array.ts';
import type { Sql } from '../../db/sql.ts';
import type { DueRow } from '../rules/due.ts';

/** Writes when devices are due next, in the transaction that changes their states: it holds their rows. */
export async function saveDue(tx: Sql, rows: readonly DueRow[]): Promise<void> {
  const { gone = [], due = [] } = Object.groupBy(rows, ({ dueTs }) =>
    dueTs === null ? 'gone' : 'due',
  );
  await Promise.all([gone.length > 0 && removeDue(tx, gone), due.length > 0 && putDue(tx, due)]);
}

async function removeDue(tx: Sql, rows: DueRow[]): Promise<void> {
  await tx.query({
    name: 'ingest-not-due',
    text: 'delete from device_due where device_id = any($1::bigint[])',
    values: [plainArray(rows.map(({ deviceId }) => deviceId))],
  });
}

async function putDue(tx: Sql, rows: DueRow[]): Promise<void> {
  await tx.query({
    name: 'ingest-due',
    text: `
      insert into device_due (device_id, account_id, due_at)
      select device_id, account_id, ms_to_timestamp(due_ts)
        from unnest($1::bigint[], $2::bigint[], $3::bigint[]) as n (device_id, account_id, due_ts)
      on conflict (device_id) do update
         set due_at = excluded.due_at, retry_at = null, failures = 0`,
    values: [
      plainArray(rows.map(({ deviceId }) => deviceId)),
      plainArray(rows.map(({ accountId }) => accountId)),
      plainArray(rows.map(({ dueTs }) => dueTs)),
    ],
  });
}

/**
 * As `claimStates`, of devices that time comes to: of those that are still due, and that no other transaction
 * has. Gives them; whoever has the others brings them what is due, or leaves it to the next look.
 */
export async function claimDue(tx: Sql, deviceIds: number[], nowTs: number): Promise<number[]> {
  const { rows } = await tx.query<{ device_id: number }>({
    name: 'ingest-claim-due',
    text: `
      update device_state s
         set version = version + 1
        from (
          select st.device_id
            from device_due due
            join device_state st on st.device_id = due.device_id
           where due.device_id = any($1::bigint[])
             and due.due_at <= ms_to_timestamp($2)
           order by st.device_id
             for no key update of st skip locked) as claimed
       where s.device_id = claimed.device_id
      returning s.device_id`,
    values: [plainArray(deviceIds), nowTs],
  });
  return rows.map(({ device_id }) => device_id);
}
