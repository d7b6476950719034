import type { Sense } from '../../../api/types.ts';
import { dateOf } from './date-of.ts';
import type { Series } from './point.ts';

const header = 'time,sId,name,unit,min,mean,max,values';

/** What is drawn, a row for each value or bucket. Numbers as they are stored, times as ISO 8601 in UTC. */
export function toCsv(all: readonly Series[], senses: ReadonlyMap<string, Sense>): string {
  const rows = all.flatMap(({ sId, points }) => {
    const { name = '', unit = '' } = senses.get(sId) ?? {};
    const of = [sId, name, unit].map(quote).join(',');
    return points.map(
      ({ ts, min, avg, max, count }) =>
        `${dateOf(ts).toISOString()},${of},${min},${avg},${max},${count}`,
    );
  });
  return [header, ...rows, ''].join('\r\n');
}

/** RFC 4180. A name that a spreadsheet would take for a formula is kept as text by an apostrophe. */
function quote(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
