import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { lockUsage } from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { explainRefusal, refuseBeyond } from '../quotas/store-within.ts';
import { insertDevices, type NewDevice } from './queries.ts';

type Batch = { accountId: number; devices: readonly NewDevice[]; quotas: QuotaSettings };

/** Of one statement: its text is put together in one go. */
const maxDevices = 50;
const maxLength = 262_144;

/**
 * Stores all of them or none. Throws `quota-exceeded` before any is stored, or `unauthenticated`. `last` is
 * the last thing in the transaction.
 */
export async function insertBatch(
  db: Database,
  { accountId, devices, quotas }: Batch,
  last: (tx: Sql) => Promise<void>,
): Promise<void> {
  const adding = { devices: devices.length, devicesPerDay: devices.length };
  await db.transaction(async (tx) => {
    await lockUsage(tx, accountId);
    await refuseBeyond(tx, { accountId, quotas, adding });
    for (const some of piecesOf(devices))
      if (!(await insertDevices(tx, accountId, some, quotas)))
        throw await explainRefusal(tx, { accountId, quotas, adding: { devices: some.length } });
    await last(tx);
  });
}

function* piecesOf(devices: readonly NewDevice[]): Generator<NewDevice[]> {
  let piece: NewDevice[] = [];
  let length = 0;
  for (const device of devices) {
    if (
      piece.length === maxDevices ||
      (piece.length > 0 && length + device.configuration.length > maxLength)
    ) {
      yield piece;
      [piece, length] = [[], 0];
    }
    piece.push(device);
    length += device.configuration.length;
  }
  if (piece.length > 0) yield piece;
}
