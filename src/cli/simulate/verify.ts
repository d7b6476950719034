import type { z } from 'zod';
import type { Screen } from '../command-line.ts';
import {
  addComparisons,
  compareReadings,
  type Comparison,
  count,
  type Reading,
  type SimulatedDevice,
  type Tally,
} from './devices.ts';
import { forEachBounded, httpConnections } from './fleet.ts';
import { type Answered, EventsAnswer, MeasurementsAnswer, type Rest } from './rest.ts';

const hourMs = 3_600_000;

/**
 * Reads back what every device sent, compares it with what was acknowledged, and says in plain words how
 * the run went. `agrees` is false when anything differs, and when nothing was acknowledged.
 */
export async function verify({
  rest,
  screen,
  devices,
  tally,
}: {
  rest: Rest;
  screen: Screen;
  devices: Pick<SimulatedDevice, 'uuid' | 'ledger'>[];
  tally: Tally;
}): Promise<{ agrees: boolean; text: string }> {
  let done = 0;
  // Ctrl-C ends the publishing, not the comparison.
  const never = new AbortController().signal;
  const results = await forEachBounded(devices, httpConnections, never, async (device) => {
    const { uuid, ledger } = device;
    const stored = await readMeasurements(rest, uuid, rangeOf(ledger.sent));
    const events = await countSenseEvents(rest, uuid);
    done += 1;
    screen.bar('Reading back', done, devices.length);
    return { comparison: compareReadings(ledger, stored), events };
  });
  const comparison = addComparisons(results.map((one) => one.comparison));
  const recordedEvents = results.reduce((total, { events }) => total + events, 0);
  return report(comparison, recordedEvents, tally);
}

function report(
  comparison: Comparison,
  recordedEvents: number,
  tally: Tally,
): { agrees: boolean; text: string } {
  const { acknowledged, found, lost, doubled, foreign, unacknowledged } = comparison;
  const nothing = acknowledged === 0;
  const events = tally.events > recordedEvents;
  const agrees = !nothing && !events && lost.length + doubled.length + foreign.length === 0;
  const lines = [
    nothing
      ? 'Nothing was acknowledged, so there is nothing to compare.'
      : `${count(acknowledged)} measurements were acknowledged, and ${count(found)} of them were ` +
        'read back.',
    ...examples('acknowledged but not stored', lost),
    ...examples('stored more than once', doubled),
    ...examples('stored, but never sent in this form', foreign),
    `${count(recordedEvents)} events are recorded; devices received ${count(tally.events)}.`,
    ...(events ? ['DIFFERENCE: devices received events that are not recorded.'] : []),
    ...warnings(tally, unacknowledged),
    ...(agrees ? ['Everything that was acknowledged is stored exactly once, as it was sent.'] : []),
  ];
  return { agrees, text: lines.join('\n') };
}

const maxExamples = 3;

function examples(what: string, readings: Reading[]): string[] {
  if (readings.length === 0) return [];
  const some = readings.slice(0, maxExamples).map(({ sId, val, ts }) => `${sId} = ${val} at ${ts}`);
  const more = readings.length > maxExamples ? ', …' : '';
  return [`DIFFERENCE: ${count(readings.length)} ${what}: ${some.join(', ')}${more}`];
}

/** Lines that do not count against the service, but explain the figures. */
function warnings(tally: Tally, unacknowledged: number): string[] {
  const open = tally.published - tally.acknowledged;
  return [
    open > 0 && `${count(open)} messages were never acknowledged.`,
    unacknowledged > 0 &&
      `${count(unacknowledged)} measurements were stored without being acknowledged.`,
    tally.skipped > 0 &&
      `${count(tally.skipped)} readings were skipped because too many were waiting.`,
    tally.reconnects > 0 &&
      `Connections were lost; devices reconnected ${count(tally.reconnects)} times.`,
    tally.refused > 0 &&
      `The service rejected ${count(tally.refused)} items: ${tally.firstRefusal}`,
  ].filter((line) => line !== false);
}

/** Includes an hour before and after, to find measurements that nobody sent. */
function rangeOf(sent: { ts: number }[]): { start: number; end: number } {
  const first = sent[0]?.ts ?? Date.now();
  const last = sent.at(-1)?.ts ?? first;
  return { start: first - hourMs, end: last + hourMs };
}

const pageSize = 1_000;

/** All measurements of a device between two times (ms, inclusive), page by page. */
async function readMeasurements(
  rest: Rest,
  uuid: string,
  range: { start: number; end: number },
): Promise<Reading[]> {
  const query = `start=${range.start}&end=${range.end}&limit=${pageSize}`;
  const path = `/v2/measurements/${uuid}?${query}`;
  const readings: Reading[] = [];
  for await (const page of pages(rest, path, MeasurementsAnswer))
    readings.push(...page.measurements);
  return readings;
}

/** The number of recorded `sense` events of a device, counted page by page. */
async function countSenseEvents(rest: Rest, uuid: string): Promise<number> {
  let found = 0;
  for await (const page of pages(rest, `/v2/events/${uuid}?type=sense`, EventsAnswer)) {
    found += page.events.length;
  }
  return found;
}

/** The pages of a list, up to the one without a next page. */
async function* pages<S extends z.ZodType>(
  rest: Rest,
  first: string,
  answer: S,
): AsyncGenerator<z.output<S>> {
  let path: string | null = first;
  while (path !== null) {
    const page: Answered<z.output<S>> = await rest.call({ method: 'GET', path, answer });
    yield page.value;
    path = page.next;
  }
}
