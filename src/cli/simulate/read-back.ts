import type { z } from 'zod';
import { EventsAnswer, MeasurementsAnswer } from './answers.ts';
import type { Reading } from './compare.ts';
import type { Answered, Rest } from './rest.ts';

const pageSize = 1_000;

/** Every measurement of a device between two points in time (ms, inclusive), page after page. */
export async function readMeasurements(
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

/** How many `sense` events of a device are recorded, counted page after page. */
export async function countSenseEvents(rest: Rest, uuid: string): Promise<number> {
  let count = 0;
  for await (const page of pages(rest, `/v2/events/${uuid}?type=sense`, EventsAnswer)) {
    count += page.events.length;
  }
  return count;
}

/** The pages of a list, from the first one to the one that names no next. */
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
