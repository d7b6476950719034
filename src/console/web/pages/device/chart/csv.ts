import type { Sense } from '../../../api/types.ts';
import { isoIn } from '../../../text/time.ts';

/** A measurement, as the service exports it. */
export type Measured = {
  deviceAuthUuid: string;
  sId: string;
  ts: number;
  val: number | { lat: number; long: number };
};

/** A device of the file, with its sensors by sId. */
export type Named = {
  uuid: string;
  name: string;
  senses: ReadonlyMap<string, Pick<Sense, 'name' | 'unit'>>;
};

const header = 'time,device,sensor,value,unit,sId';

/** One row for each value, as it was sent: numbers with a point, times as ISO 8601 in the zone, with its offset. */
export function toCsv(rows: readonly Measured[], devices: readonly Named[], zone: string): string {
  const time = isoIn(zone);
  const byUuid = new Map(devices.map((device) => [device.uuid, device]));
  const lines = rows.map(({ deviceAuthUuid, sId, ts, val }) => {
    const device = byUuid.get(deviceAuthUuid);
    const of = quote(device?.name || deviceAuthUuid);
    const { name = sId, unit = '' } = device?.senses.get(sId) ?? {};
    const value = typeof val === 'number' ? String(val) : quote(`${val.lat}, ${val.long}`);
    return `${time(ts)},${of},${quote(name)},${value},${quote(unit)},${quote(sId)}`;
  });
  return [header, ...lines, ''].join('\r\n');
}

/** RFC 4180. An apostrophe keeps a name as text that a spreadsheet would take for a formula. */
function quote(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
