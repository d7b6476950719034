import type { Database } from '../db/database.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import {
  deleteInBatches,
  documentsOf,
  jsonSequence,
  plainArray,
  plainArrays,
  type Sql,
} from '../db/sql.ts';
import { hourMs, type LateHour, type PlacedInput } from './rules/device-input.ts';

/** Keeps inputs of devices, in ingest's transaction. */
export async function keepInputs(tx: Sql, inputs: readonly PlacedInput[]): Promise<void> {
  await tx.query({
    name: 'ingest-inputs',
    text: `
      insert into device_input (device_id, arrived, nth, kind, body)
      select device_id, arrived, nth, kind, body::json
        from unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::text[], ${documentsOf('$5')})
          as n (device_id, arrived, nth, kind, body)`,
    values: [
      ...plainArrays(
        inputs.map(({ deviceId }) => deviceId),
        inputs.map(({ arrived }) => arrived),
        inputs.map(({ nth }) => nth),
      ),
      inputs.map(({ kind }) => kind),
      jsonSequence(inputs.map(({ body }) => JSON.stringify(body))),
    ],
  });
}

/** Of a row with its place in the index. */
const rowBytes = 150;

/** Roughly how much an input takes. */
export const bytesOfInput = ({ body }: PlacedInput): number =>
  rowBytes + (body === null ? 0 : JSON.stringify(body).length);

/** Keeps the oldest time of each hour. */
export async function keepLateHours(
  tx: Sql,
  hours: Iterable<LateHour & { deviceId: number }>,
): Promise<void> {
  // In order, so that two transactions that write the same ones do not deadlock.
  const ordered = [...hours].toSorted(
    (one, other) => one.deviceId - other.deviceId || one.hour - other.hour,
  );
  await tx.query({
    name: 'ingest-late-hours',
    text: `
      insert into late_arrival as known (device_id, hour, oldest_ts)
      select * from unnest($1::bigint[], $2::integer[], $3::bigint[])
          on conflict (device_id, hour) do update
         set oldest_ts = least(known.oldest_ts, excluded.oldest_ts)`,
    values: plainArrays(
      ordered.map(({ deviceId }) => deviceId),
      ordered.map(({ hour }) => hour),
      ordered.map(({ oldestTs }) => oldestTs),
    ),
  });
}

/**
 * Makes ingest note what it reads of these devices next, as arrived after that time (ms): the newest values may not say
 * any more when they arrived. Their rows are locked.
 */
export async function noteAnew(tx: Sql, deviceIds: number[], arrivedTs: WallMs): Promise<void> {
  await tx.query({
    name: 'inputs-note-anew',
    text: `
      update device_state
         set noted = '', arrived_at = greatest(arrived_at, ms_to_timestamp($2))
       where device_id = any($1::bigint[]) and noted is not null`,
    values: [plainArray(deviceIds), arrivedTs],
  });
}

const dayMs = 86_400_000;

type Kept = { eventsDays: number; measurementsDays: number };

/** Deletes inputs as old as deleted events, and late hours as old as deleted measurements. A chore of the upkeep. */
export async function forgetInputs(
  db: Database,
  { eventsDays, measurementsDays }: Kept,
  nowTs: WallMs,
  signal?: AbortSignal,
): Promise<void> {
  const deleteOld = (table: string, column: string, before: number) =>
    deleteInBatches(
      (limit) =>
        db.query(
          `delete from ${table}
            where ctid = any(array(select ctid from ${table} where ${column} < $1 limit $2))`,
          [before, limit],
        ),
      { signal },
    );
  if (eventsDays < Infinity)
    await deleteOld('device_input', 'arrived', Math.floor(nowTs - eventsDays * dayMs));
  if (measurementsDays < Infinity)
    await deleteOld(
      'late_arrival',
      'hour',
      Math.floor((nowTs - measurementsDays * dayMs) / hourMs),
    );
}
