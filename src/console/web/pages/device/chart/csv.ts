import type { Sense } from '../../../api/types.ts';
import { isoIn } from '../../../text/time.ts';

type Measured = { sId: string; ts: number; val: number | { lat: number; long: number } };
type Named = {
  device: string;
  senses: ReadonlyMap<string, Pick<Sense, 'name' | 'unit'>>;
  /** The time zone of the times. */
  zone: string;
};

const header = 'time,device,sensor,value,unit,sId';

/** One row for each value, as it was sent: numbers with a point, times as ISO 8601 in the zone, with its offset. */
export function toCsv(rows: readonly Measured[], { device, senses, zone }: Named): string {
  const time = isoIn(zone);
  const of = quote(device);
  const lines = rows.map(({ sId, ts, val }) => {
    const { name = sId, unit = '' } = senses.get(sId) ?? {};
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
