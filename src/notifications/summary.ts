import type { Severity } from '../contract/actions.ts';
import type { WallMs } from '../lib/clock-readings.ts';
import type { DeviceWords } from './recipients.ts';
import { describeExcursion, describeTime, type Excursion } from './text.ts';
import type { Words } from './words.ts';

// What a summary of many messages says: which alarms have begun, which are over, and where each list of them is.

/**
 * A message of a summary, with its alarm as it is now. `title`: of the message that its recipient was told by, which is
 * not that the alarm is over. Times in ms; null: it is about no alarm, or that is open.
 */
export type Gathered = Excursion & {
  title: string;
  body: string;
  alarmId: number | null;
  sinceTs: number;
  closedTs: number | null;
  severity: Severity;
  deviceId: number | null;
  labels: string[];
  isCounted: boolean;
  /** It says that an alarm is over, of which its recipient was told by a summary. */
  isByCount: boolean;
};

type Saying = {
  /** How many alarms of which the recipient was told are not over. */
  left: number;
  /** How the senses of alarms that are over are written, by device. */
  devices: ReadonlyMap<number, DeviceWords>;
  timeZone: string | null;
  nowTs: WallMs;
  words: Words;
};

const maxNamed = 10;
const maxLabels = 5;
const severities: Severity[] = ['critical', 'warning', 'info'];

/** Title and lines of a summary: what has begun, the most severe first, then what is over. */
export function summaryOf(
  all: readonly Gathered[],
  saying: Saying,
): { title: string; lines: string[] } {
  const { left, words } = saying;
  const { open, over } = sorted(all);
  const ended = listOver(over, saying);
  if (open.length === 0) return { title: words.gatheredOver(over.length, left), lines: ended };
  const also = over.length > 0 ? [`${words.gatheredOver(over.length, 0)}:`, ...ended] : [];
  return { title: openTitle(open, saying), lines: [...listOpen(open, words), ...also] };
}

/** One that is alone keeps its own words. */
function openTitle(open: readonly Gathered[], { timeZone, nowTs, words }: Saying): string {
  const [first, ...others] = open;
  if (first && others.length === 0) return first.title;
  const devices = new Set(open.map(({ deviceId }) => deviceId)).size;
  const sinceTs = Math.min(...open.map((one) => one.sinceTs));
  const title = words.gathered(open.length, devices, describeTime(sinceTs, nowTs, timeZone, words));
  const critical = open.filter(({ severity }) => severity === 'critical').length;
  return critical === 0 ? title : `${title}, ${words.severity.critical(critical)}`;
}

function listOpen(open: readonly Gathered[], words: Words): string[] {
  const [first, ...others] = open;
  if (first && others.length === 0) return [first.body];
  return [
    ...saySeverities(open, words),
    ...sayLabels(open, words),
    ...open.slice(0, maxNamed).map(({ title }) => title),
    ...sayMore(open, words),
  ];
}

function listOver(over: readonly Gathered[], { devices, words }: Saying): string[] {
  const line = (one: Gathered) => {
    const senses = devices.get(one.deviceId ?? -1)?.senses ?? {};
    return [one.title, describeExcursion(one, senses, words)]
      .filter((part) => part !== '')
      .join(', ');
  };
  return [
    ...saySeverities(over, words),
    ...sayLabels(over, words),
    ...over.slice(0, maxNamed).map(line),
    ...sayMore(over, words),
  ];
}

/** The alarms that are over that a summary of these messages names. */
export const namedOver = (all: readonly Gathered[]): Gathered[] =>
  sorted(all).over.slice(0, maxNamed);

function sorted(all: readonly Gathered[]): { open: Gathered[]; over: Gathered[] } {
  const alarms = distinct(all);
  return {
    open: alarms.filter(({ closedTs }) => closedTs === null),
    over: alarms.filter(({ closedTs }) => closedTs !== null),
  };
}

/** Several messages may be about one alarm. */
function distinct(all: readonly Gathered[]): Gathered[] {
  const seen = new Set<number>();
  return all.filter(({ alarmId }) => {
    if (alarmId === null) return true;
    const isNew = !seen.has(alarmId);
    seen.add(alarmId);
    return isNew;
  });
}

/** "1 critical, 6 warnings"; nothing if all are warnings or all are infos. */
function saySeverities(alarms: readonly Gathered[], words: Words): string[] {
  const bySeverity = severities.flatMap((severity) => {
    const count = alarms.filter((one) => one.severity === severity).length;
    return count > 0 ? [words.severity[severity](count)] : [];
  });
  return bySeverity.length > 1 || alarms[0]?.severity === 'critical' ? [bySeverity.join(', ')] : [];
}

const sayMore = (alarms: readonly Gathered[], words: Words): string[] =>
  alarms.length > maxNamed ? [words.andMore(alarms.length - maxNamed)] : [];

/** How many alarms there are at devices with each label, most first; nothing if no device has one. */
function sayLabels(alarms: readonly Gathered[], words: Words): string[] {
  const counts = new Map<string, number>();
  for (const { labels } of alarms)
    for (const label of labels.length > 0 ? labels : [''])
      counts.set(label, (counts.get(label) ?? 0) + 1);
  if (counts.size === 0 || (counts.size === 1 && counts.has(''))) return [];
  const named = [...counts].toSorted(([, a], [, b]) => b - a);
  const said = named
    .slice(0, maxLabels)
    .map(([label, count]) => words.atLabel(label || words.noLabel, count));
  return [said.join(', ') + (named.length > maxLabels ? ', …' : '')];
}

/**
 * The lists of alarms that a summary is about: of open ones the worst first, of one label if all of their devices have
 * that; of those that are over exactly these, by the number of the message that the summary is sent as.
 */
export function pagesOf(all: readonly Gathered[], notificationId: number): string[] {
  const { open, over } = sorted(all);
  const pages: string[] = [];
  if (open.length > 0) {
    const [first, ...others] = open.map(({ labels }) => labels);
    const common = first?.filter((label) => others.every((labels) => labels.includes(label)));
    const query = new URLSearchParams({ sort: 'severity' });
    if (common?.[0] !== undefined) query.set('label', common[0]);
    pages.push(`alarms?${query.toString()}`);
  }
  if (over.length > 0) pages.push(`alarms?state=closed&notification=${notificationId}`);
  return pages;
}
