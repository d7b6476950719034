import type { Measurement } from '../../contract/measurement.ts';
import type { Sql } from '../../db/sql.ts';
import type { Work } from '../queue/device-queue.ts';
import type { MeasurementRow } from '../rules/measurement-row.ts';
import type { DeviceContext } from '../rules/device-context.ts';
import { aheadMs } from '../rules/sense-clock.ts';
import { nameOfStored, StoredAlready } from '../rules/stored-already.ts';

/** Those of the rows that the history has. */
export type FindStored = (tx: Sql, rows: MeasurementRow[]) => Promise<MeasurementRow[]>;

const none: ReadonlyMap<number, StoredAlready> = new Map();

/**
 * What the history has of the measurements of devices where the newest of each sense does not tell: below it,
 * ahead of their arrival, or of a sense with a clock of its own. To be asked where a redelivery is expected.
 */
export async function findStoredAlready(
  tx: Sql,
  works: Work[],
  findStored: FindStored,
): Promise<ReadonlyMap<number, StoredAlready>> {
  const asked = new Map<number, MeasurementRow[]>();
  for (const { queue, units } of works) {
    const { context } = queue;
    if (!context || context.watched.size === 0) continue;
    const rows = rowsOf(context, units);
    if (rows.length > 0) asked.set(context.device.deviceId, rows);
  }
  if (asked.size === 0) return none;
  const found = Map.groupBy(
    await findStored(tx, [...asked.values()].flat()),
    ({ deviceId }) => deviceId,
  );
  const names = (deviceId: number) => (found.get(deviceId) ?? []).map(nameOfRow);
  return new Map(
    [...asked.keys()].map((deviceId) => [deviceId, new StoredAlready(names(deviceId))]),
  );
}

/** All that its purposes read, where one of them is in doubt. */
function rowsOf({ device, watched, seen, clocks }: DeviceContext, units: Work['units']) {
  const rows: MeasurementRow[] = [];
  const newest = new Map<string, number>();
  let isInDoubt = false;
  for (const { content, message } of units) {
    if (content.kind !== 'measurements') continue;
    const { arrivedTs } = message.uplink;
    for (const { value } of content.items) {
      const { sId, val, ts = arrivedTs } = value;
      const number = watched.get(sId);
      if (number === undefined) continue;
      const last = newest.get(sId) ?? seen.get(number)?.ts ?? -Infinity;
      isInDoubt ||= ts < last || ts > arrivedTs + aheadMs || clocks?.has(sId) === true;
      newest.set(sId, Math.max(last, ts));
      const place =
        typeof val === 'number' ? { val, long: undefined } : { val: val.lat, long: val.long };
      rows.push({ deviceId: device.deviceId, sId, ts, ...place });
    }
  }
  return isInDoubt ? rows : [];
}

function nameOfRow({ sId, ts, val, long }: MeasurementRow): string {
  const given: Measurement['val'] = long === undefined ? val : { lat: val, long };
  return nameOfStored({ sId, ts, val: given });
}
