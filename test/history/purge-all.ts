import type { Database } from '../../src/db/database.ts';
import {
  purgeDevices,
  type RemovedDevices,
  ClearingStep,
} from '../../src/history/clear-removed.ts';
import { monotonicClock } from '../../src/lib/clock.ts';

/** Deletes all history of devices, in as many steps as it takes. */
export async function purgeAll(db: Database, removed: RemovedDevices): Promise<void> {
  const newTurn = () => new ClearingStep(monotonicClock, new AbortController().signal);
  while (!(await purgeDevices(db, removed, newTurn())));
}
