import type { DeviceIdentity, SentMeasurement } from '../../src/contract/uplink.ts';
import type { Database } from '../../src/db/database.ts';
import { forever, now, recordedEvents, uplink, type IngestProcess } from './harness.ts';

/** A value of 0x01 with its time and its arrival, ms after `now`. Null: it has no time. */
export type Point = [ts: number | null, val: number, arrived?: number];

/** Sends each in a message of its own, one after the other. */
export async function send(
  by: IngestProcess,
  device: DeviceIdentity,
  points: Point[],
  sId = '0x01',
): Promise<void> {
  for (const [at, val, arrived = 0] of points) {
    const value: SentMeasurement = { sId, val, ...(at !== null && { ts: now + at }) };
    const items = [{ index: null, value }];
    await by.ingest.ingest(device, uplink({ kind: 'measurements', items }, now + arrived), forever);
  }
}

/** The times of recorded sense events, ms after `now`, and the value of the first cause that fired each. */
export async function listFired(
  db: Database,
  device: DeviceIdentity,
): Promise<[number, number | undefined][]> {
  const events = await recordedEvents(db, device);
  const found = events.flatMap(({ body, ts }): [number, number | undefined][] =>
    'senses' in body.cause ? [[ts - now, body.cause.senses[0]?.val]] : [],
  );
  // What several processes have stored has no order.
  return found.toSorted(([one], [other]) => one - other);
}

/** The notices about its clock that the device received, from the given index on. */
export const listRemarks = ({ down }: IngestProcess, since = 0) =>
  down
    .slice(since)
    .filter(({ topic }) => topic === 'errors')
    .map(({ payload }) => (payload as { reason: string }).reason);
