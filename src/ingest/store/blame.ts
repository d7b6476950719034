import { plainArray } from '../../db/array.ts';
import type { Sql } from '../../db/sql.ts';
import { MillisecondFull } from './millisecond-full.ts';
import type { DeviceQueue, Work } from '../queue/device-queue.ts';
import type { StaleContext } from './write.ts';

/**
 * The devices for which a transaction was given up, as far as that can be told; their contexts are forgotten.
 * The other queues' are taken to be as they were read, in a transaction that is committed.
 */
export async function findBlamed(
  error: MillisecondFull | StaleContext,
  work: Work[],
  db: Sql,
): Promise<ReadonlySet<number>> {
  if (error instanceof MillisecondFull) return new Set(error.rows.map(({ deviceId }) => deviceId));
  const queues = work.map(({ queue }) => queue).filter(({ context }) => context !== null);
  const changed = await listChanged(db, queues);
  for (const queue of queues) if (changed.has(queue.device.deviceId)) queue.context = null;
  for (const deviceId of error.forgotten) changed.add(deviceId);
  return changed;
}

/** A batch in two: the messages of accounts that have one of these devices, and those of all others. */
export function setApart(
  batch: Work[],
  blamed: ReadonlySet<number>,
): { ofBlamed: Work[]; ofOthers: Work[] } {
  const isBlamed = ({ queue }: Work) => blamed.has(queue.device.deviceId);
  const accounts = new Set(batch.filter(isBlamed).map(({ queue }) => queue.accountId));
  const { ofBlamed = [], ofOthers = [] } = Object.groupBy(batch, ({ queue }) =>
    accounts.has(queue.accountId) ? 'ofBlamed' : 'ofOthers',
  );
  return { ofBlamed, ofOthers };
}

/** Those that do not stand any more at the version that is remembered of them. */
async function listChanged(db: Sql, queues: DeviceQueue[]): Promise<Set<number>> {
  const { rows } = await db.query<{ device_id: number }>({
    name: 'ingest-changed',
    text: `
      select read.device_id
        from unnest($1::bigint[], $2::bigint[]) as read (device_id, version)
        left join device_state s on s.device_id = read.device_id and s.version = read.version
       where s.device_id is null`,
    values: [
      plainArray(queues.map(({ device }) => device.deviceId)),
      plainArray(queues.map(({ context }) => context?.version ?? null)),
    ],
  });
  return new Set(rows.map(({ device_id }) => device_id));
}

/** What is known of these devices may not be so any more: it is read again. */
export function forgetContexts(works: Work[]): void {
  for (const { queue } of works) queue.context = null;
}
