import { lastOf, type Measurement } from '../contract/values.ts';
import { plainArray, type Sql } from '../db/sql.ts';
import { findNewest } from '../measurements/store.ts';
import { aheadMs, watermarkAfterImport, ofDevice, type Watermark } from './rules/watermark.ts';
import type { MeasurementRow } from './rules/model.ts';
import { noteAnew } from './keep-inputs.ts';
import { saveClocks } from './save-states.ts';
import { claimStates } from './write.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Locks the devices' rows until the transaction ends, so that nothing of them is evaluated meanwhile. */
export async function lockDevices(tx: Sql, deviceIds: number[]): Promise<void> {
  await tx.query({
    name: 'import-hold',
    // In order, so that two transactions that lock the same devices do not deadlock. Includes devices without a
    // profile: one installed meanwhile would be evaluated while the import is not visible yet.
    text: `
      select from device_state
       where device_id = any($1::bigint[])
       order by device_id
         for no key update`,
    values: [plainArray(deviceIds)],
  });
}

/**
 * Makes what this transaction wrote of devices count as stored for ingest, in every process, from its commit on:
 * whatever they remember of the newest measurements becomes invalid, and is read again.
 */
export async function noteImported(
  tx: Sql,
  rows: readonly MeasurementRow[],
  arrivedTs: WallMs,
): Promise<void> {
  const deviceIds = [...new Set(rows.map(({ deviceId }) => deviceId))];
  await lockDevices(tx, deviceIds);
  await claimStates(tx, deviceIds);
  await noteAnew(tx, deviceIds, arrivedTs);
  await saveClocksOf(tx, rows, arrivedTs, deviceIds);
}

type Extent = {
  deviceId: number;
  sId: string;
  /** The newest that is not ahead, ms; -Infinity: none is. */
  plainTs: number;
  isAhead: boolean;
};

/** Saves the watermarks of senses whose clock is not at the history's newest measurement, or would not be. */
async function saveClocksOf(
  tx: Sql,
  rows: readonly MeasurementRow[],
  arrivedTs: WallMs,
  deviceIds: number[],
): Promise<void> {
  const stored = await listClocks(tx, deviceIds);
  const concerned = extentsOf(rows, arrivedTs).filter(
    (extent) => extent.isAhead || stored.has(nameOf(extent)),
  );
  if (concerned.length === 0) return;
  const newest = await findNewest(tx, concerned);
  const changed = [];
  for (const { deviceId, sId, plainTs, isAhead } of concerned) {
    const last = newest.get(deviceId)?.[sId];
    if (!last) continue;
    const own = { ts: last.ts, val: lastOf(last) as Measurement['val'] };
    const clock = stored.get(nameOf({ deviceId, sId }));
    const state = watermarkAfterImport(clock, own, {
      plainTs,
      isAhead,
      aheadTs: arrivedTs + aheadMs,
    });
    if (state === 'unknown') {
      const before = await findNewest(tx, [{ deviceId, sId }], arrivedTs + aheadMs);
      const { ts: clockTs = null, vals = [] } = before.get(deviceId)?.[sId] ?? {};
      const { ts: newestTs, val: newestVal } = own;
      changed.push({ deviceId, sId, state: { newestTs, newestVal, clockTs, vals, late: null } });
    } else if (state) changed.push({ deviceId, sId, state });
  }
  if (changed.length > 0) await saveClocks(tx, changed);
}

const nameOf = ({ deviceId, sId }: { deviceId: number; sId: string }) => `${deviceId} ${sId}`;

function extentsOf(rows: readonly MeasurementRow[], arrivedTs: WallMs): Extent[] {
  const extents = new Map<string, Extent>();
  for (const { deviceId, sId, ts } of rows) {
    const name = nameOf({ deviceId, sId });
    const extent = extents.get(name) ?? { deviceId, sId, plainTs: -Infinity, isAhead: false };
    if (ts > arrivedTs + aheadMs) extent.isAhead = true;
    else if (ts > extent.plainTs) extent.plainTs = ts;
    extents.set(name, extent);
  }
  return [...extents.values()];
}

async function listClocks(tx: Sql, deviceIds: number[]): Promise<Map<string, Watermark>> {
  const { rows } = await tx.query<{ deviceId: number; sId: string; state: Watermark }>({
    name: 'import-clocks',
    text: `
      select device_id as "deviceId", s_id as "sId", state
        from sense_clock
       where device_id = any($1::bigint[]) and s_id <> $2`,
    values: [plainArray(deviceIds), ofDevice],
  });
  return new Map(rows.map((row) => [nameOf(row), row.state]));
}
