import { getConfiguration, getDevice, sensesOf } from '../../api/devices.ts';
import { listAlarms } from '../../api/events.ts';
import { listBuckets } from '../../api/measurements.ts';
import type { BucketView, ListedAlarm, Sense } from '../../api/types.ts';
import { dayOf, monthAt, tsOf } from '../../text/time.ts';
import { beganOf, overOf } from '../alarms/about.ts';
import { gapsIn, kindOf, knownFrom, type Span } from '../device/chart/points.ts';

type Stats = Pick<BucketView, 'min' | 'avg' | 'max' | 'count'>;

/** What a sense measured in a month. */
type SenseMonth = {
  sense: Sense;
  /** By day, as 2026-10-25; a day without values is absent. */
  days: ReadonlyMap<string, Stats>;
  /** Of all days; the mean is that of the values. */
  whole: Stats;
  gaps: readonly Span[];
};

/** A device's month. */
export type Month = {
  name: string;
  serial: string;
  /** What it covers: until now, if the month is not over. */
  span: Span;
  /** Each day of the span, as 2026-10-25. */
  days: readonly string[];
  senses: readonly SenseMonth[];
  /** When the device was read, ms. */
  readTs: number;
  /** When the device was added, ms; null if it has values of before that in this month. */
  addedTs: number | null;
  /** Those that measured nothing, and the span in which there was a device. */
  silent: readonly Sense[];
  known: Span;
  /** Oldest first. */
  alarms: readonly ListedAlarm[];
  /** There are more alarms than a record has. */
  isCut: boolean;
};

/** The month of a text such as 2026-10, in the zone; the current one if it is none, or of the time to come. */
export function monthOf(text: string, nowTs: number, zone: string): Span {
  const middle = /^\d{4}-\d{2}$/.test(text) ? tsOf(`${text}-15T12:00`, zone) : undefined;
  const asked = middle === undefined ? undefined : monthAt(middle, zone, 0);
  return asked && asked.start > 0 && asked.start < nowTs ? asked : monthAt(nowTs, zone, 0);
}

const quarterMs = 900_000;

/** Reads a month of a device. `nowTs` ends a month that is not over. */
export async function loadMonth(
  uuid: string,
  month: Span,
  { zone, nowTs }: { zone: string; nowTs: number },
  signal: AbortSignal,
): Promise<Month> {
  const span = { start: month.start, end: Math.min(month.end, nowTs) };
  const [configuration, { registeredTs }, byDay, byQuarter, found] = await Promise.all([
    getConfiguration(uuid, signal),
    getDevice(uuid, signal),
    listBuckets(uuid, { ...span, bucket: '1d', tz: zone }, signal),
    listBuckets(uuid, { ...span, bucket: '15m' }, signal),
    listAlarmsIn(uuid, span, signal),
  ]);
  const days = Map.groupBy(byDay, ({ sId }) => sId);
  const quarters = Map.groupBy(byQuarter.toReversed(), ({ sId }) => sId);
  const knownTs = knownFrom(registeredTs, { firstTs: byQuarter.at(-1)?.ts, widthMs: quarterMs });
  // Values of before the device was added were imported: then nobody knows since when there is one.
  const addedTs = knownTs === registeredTs ? registeredTs : null;
  const known = { start: Math.max(span.start, addedTs ?? span.start), end: span.end };
  const all = [...sensesOf(configuration).values()];
  const senses = all.flatMap((sense) => {
    const own = days.get(sense.sId) ?? [];
    // What is only on or off has no mean that anybody signs.
    if (own.length === 0 || kindOf(sense, { points: own }) === 'switch') return [];
    return [
      {
        sense,
        days: new Map(own.map((bucket) => [dayOf(bucket.ts, zone), bucket])),
        whole: joined(own),
        gaps: gapsIn({ points: quarters.get(sense.sId) ?? [], widthMs: quarterMs }, known),
      },
    ];
  });
  const { name = '', serial = '' } = configuration.device;
  const silent = all.filter(({ sId }) => !days.has(sId));
  const rest = {
    days: daysOf(span, zone),
    readTs: nowTs,
    addedTs,
    senses,
    silent,
    known,
    ...found,
  };
  return { name, serial: serial ?? '', span, ...rest };
}

function daysOf({ start, end }: Span, zone: string): string[] {
  const days = new Set<string>();
  // No day is shorter than 23 hours.
  for (let ts = start; ts < end; ts += 23 * 3_600_000) days.add(dayOf(ts, zone));
  days.add(dayOf(end - 1, zone));
  return [...days];
}

function joined(all: readonly Stats[]): Stats {
  const count = all.reduce((sum, each) => sum + each.count, 0);
  return {
    min: Math.min(...all.map(({ min }) => min)),
    max: Math.max(...all.map(({ max }) => max)),
    avg: all.reduce((sum, each) => sum + each.avg * each.count, 0) / count,
    count,
  };
}

const pages = 10;

/** Alarms that were open at some time in the span, among the newest 1,000 of the device. */
async function listAlarmsIn(uuid: string, span: Span, signal: AbortSignal) {
  const found: ListedAlarm[] = [];
  let cursor: string | null = '';
  for (let page = 0; page < pages && cursor !== null; page += 1) {
    const asked = { state: '', device: uuid, cursor, limit: 100 };
    const { body, next } = await listAlarms(asked, signal);
    found.push(...body.alarms);
    cursor = next;
  }
  const alarms = found
    .filter((alarm) => beganOf(alarm) < span.end && (overOf(alarm) ?? span.end) > span.start)
    .toSorted((one, other) => beganOf(one) - beganOf(other));
  return { alarms, isCut: cursor !== null };
}
