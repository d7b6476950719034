import type { Database } from '../../src/db/database.ts';
import { createClearing } from '../../src/history/clear-removed.ts';
import { monotonicClock } from '../../src/lib/clock.ts';

/** Deletes all history of devices, as a process does that finds them removed. */
export async function purgeAll(
  db: Database,
  { accountId, deviceIds }: { accountId: number | null; deviceIds: number[] },
): Promise<void> {
  await db.query(
    `insert into removed_device (device_id, account_id)
     select device_id, $2 from unnest($1::bigint[]) as device_id
         on conflict (device_id) do nothing`,
    [deviceIds, accountId],
  );
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  const clearing = createClearing({ db, monotonicClock, detach: async () => 0, onError });
  await clearing.resume();
  await clearing.close();
  if (errors.length > 0) throw new AggregateError(errors, 'Not all of it was deleted.');
}
