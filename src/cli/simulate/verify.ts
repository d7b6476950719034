import { forEachBounded } from './bounded.ts';
import { addComparisons, compareReadings, type Comparison } from './compare.ts';
import type { SimulatedDevice } from './device.ts';
import { httpConnections } from './fleet.ts';
import { countSenseEvents, readMeasurements } from './read-back.ts';
import type { Rest } from './rest.ts';
import type { Screen } from './screen.ts';

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

/** Reads an hour more on both sides: measurements that nobody sent must be found too. */
function rangeOf(sent: { ts: number }[]): { start: number; end: number } {
  const first = sent[0]?.ts ?? Date.now();
  const last = sent.at(-1)?.ts ?? first;
  return { start: first - hourMs, end: last + hourMs };
}
