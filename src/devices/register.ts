import type { Database } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import { storeWithin } from '../quotas/store-within.ts';
import { insertDevices, type NewDevice } from './queries.ts';

/** Stores a device within the account's quotas; throws `quota-exceeded`, or `unauthenticated`. */
export type RegisterDevice = (accountId: number, device: NewDevice) => Promise<void>;

type Waiting = PromiseWithResolvers<void> & { device: NewDevice };

/** Of one statement. */
const maxDevices = 50;
const maxBytes = 1_048_576;

/**
 * Registrations of one account that come at once share a statement: each alone would hold the account's
 * counter over its commit, and the others would wait for one commit after the other.
 */
export function createRegistration(db: Database, quotas: QuotaSettings): RegisterDevice {
  const queues = new Map<number, Waiting[]>();

  async function storeOne(accountId: number, { device, resolve, reject }: Waiting): Promise<void> {
    const adding = { devices: 1, devicesPerDay: 1 };
    const store = async () => (await insertDevices(db, accountId, [device], quotas)) || null;
    await storeWithin(db, { accountId, quotas, adding }, store).then(() => resolve(), reject);
  }

  /** Stores all of them; where that is beyond a quota or one of them fails, each half by itself. */
  async function storeAll(accountId: number, batch: Waiting[]): Promise<void> {
    const [first] = batch;
    if (batch.length === 1 && first) return storeOne(accountId, first);
    const devices = batch.map(({ device }) => device);
    try {
      if (await insertDevices(db, accountId, devices, quotas)) {
        for (const { resolve } of batch) resolve();
        return;
      }
    } catch (error) {
      if (error instanceof DomainError) {
        for (const { reject } of batch) reject(error);
        return;
      }
    }
    const half = Math.ceil(batch.length / 2);
    await storeAll(accountId, batch.slice(0, half));
    await storeAll(accountId, batch.slice(half));
  }

  async function storeWaiting(accountId: number, queue: Waiting[]): Promise<void> {
    while (queue.length > 0) await storeAll(accountId, takeBatch(queue));
    queues.delete(accountId);
  }

  return (accountId, device) => {
    const waiting = { ...Promise.withResolvers<void>(), device };
    const queue = queues.get(accountId);
    if (queue) queue.push(waiting);
    else {
      const begun = [waiting];
      queues.set(accountId, begun);
      void storeWaiting(accountId, begun);
    }
    return waiting.promise;
  };
}

/** The first ones, as many as one statement may hold. */
function takeBatch(queue: Waiting[]): Waiting[] {
  let bytes = 0;
  let count = 0;
  while (count < queue.length && count < maxDevices) {
    bytes += queue[count]?.device.configuration.length ?? 0;
    if (count > 0 && bytes > maxBytes) break;
    count += 1;
  }
  return queue.splice(0, count);
}
