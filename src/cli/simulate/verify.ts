import type { z } from 'zod';
import type { Screen } from '../command-line.ts';
import {
  addComparisons,
  compareReadings,
  type Comparison,
  type Reading,
  type SimulatedDevice,
} from './devices.ts';
import { forEachBounded, httpConnections } from './fleet.ts';
import { type Answered, EventsAnswer, MeasurementsAnswer, type Rest } from './rest.ts';

const hourMs = 3_600_000;

export type Verification = { comparison: Comparison; recordedEvents: number };

/** Reads back what every device sent and compares it with what was acknowledged. */
export async function verify(
  rest: Rest,
  screen: Screen,
  devices: Pick<SimulatedDevice, 'uuid' | 'ledger'>[],
): Promise<Verification> {
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
  return {
    comparison: addComparisons(results.map(({ comparison }) => comparison)),
    recordedEvents: results.reduce((total, { events }) => total + events, 0),
  };
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
  let count = 0;
  for await (const page of pages(rest, `/v2/events/${uuid}?type=sense`, EventsAnswer)) {
    count += page.events.length;
  }
  return count;
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
