import type { Database } from '../../src/db/database.ts';
import type { RegisteredDevice } from '../api.ts';
import type { BenchService } from '../service.ts';

/** What is timed: through the service, and with the database alone; seconds. */
export type BulkRow = { name: string; service: number; database: number };

/** An installation with devices, and the number of measurements to import and export. */
export type Bulk = {
  service: BenchService;
  db: Database;
  token: string;
  devices: RegisteredDevice[];
  rows: number;
};

const dayMs = 86_400_000;
export const devicesOfImport = 100;
/** Imports and exports cover this many days, all of them old enough to be compressed. */
const days = 20;

/** The time of a line's measurement. All devices alternate, as in a history that is written day by day. */
export function tsOf(rows: number, n: number, offsetMs: number): number {
  const fromTs = Math.floor(Date.now() / dayMs) * dayMs - (days + 5) * dayMs;
  const step = Math.floor((days * dayMs * devicesOfImport) / rows);
  return fromTs + Math.floor(n / devicesOfImport) * step + offsetMs;
}

/** Sends a request to the service, and reads the answer to its end. */
export async function read(
  { service, token }: Bulk,
  path: string,
  accept = 'application/json',
  encoding: 'identity' | 'gzip' = 'identity',
) {
  const response = await fetch(service.baseUrl + path, {
    headers: { authorization: `Bearer ${token}`, accept, 'accept-encoding': encoding },
  });
  if (!response.ok || !response.body) throw new Error(await response.text());
  for await (const chunk of response.body) void chunk;
}

/** How long the work takes. */
export async function seconds(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return (performance.now() - startedMs) / 1_000;
}

const timesOfMedian = 21;

/** The median of several runs. */
export async function median(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < timesOfMedian; n += 1) times.push(await seconds(work));
  return times.toSorted((a, b) => a - b)[Math.floor(timesOfMedian / 2)] ?? 0;
}
