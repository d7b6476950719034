import { setTimeout as delay } from 'node:timers/promises';
import type { SimulatedDevice } from './device.ts';
import type { Screen } from './screen.ts';
import { progressLine, type Tally } from './tally.ts';

export type PublishOptions = {
  devices: SimulatedDevice[];
  seconds: number;
  /** Messages a second of each device. */
  rate: number;
  tally: Tally;
  screen: Screen;
  /** Ends it early. */
  signal: AbortSignal;
};

const tickMs = 20;
const settleMs = 20_000;
/** With this many unacknowledged messages a device skips a reading, so that an outage cannot fill the memory. */
const maxWaiting = 200;

/** Publishes for the given time, then waits for the acknowledgements that are still out. Returns seconds. */
export async function publishAll(options: PublishOptions): Promise<number> {
  const { devices, seconds, tally, screen, signal } = options;
  const due = schedule(options);
  const startedMs = performance.now();
  const elapsed = () => (performance.now() - startedMs) / 1_000;
  const show = liveLine(tally, screen, elapsed);
  while (elapsed() < seconds && !signal.aborted) {
    due(elapsed());
    show();
    await delay(tickMs);
  }
  const published = elapsed();
  const giveUpMs = performance.now() + settleMs;
  while (devices.some((device) => device.waiting() > 0) && performance.now() < giveUpMs) {
    show();
    await delay(tickMs);
  }
  const perSecond = tally.published / published;
  screen.say(progressLine(tally, published, perSecond));
  return published;
}

/** Publishes what is due by now: the devices take turns within an interval, none drifts. */
function schedule({ devices, rate, tally }: PublishOptions): (elapsedSeconds: number) => void {
  const done = devices.map(() => 0);
  return (elapsedSeconds) => {
    for (const [index, device] of devices.entries()) {
      const phase = index / devices.length;
      const due = Math.floor(elapsedSeconds * rate - phase) + 1;
      for (let sent = done[index] ?? 0; sent < due; sent += 1) {
        if (device.waiting() < maxWaiting) device.publish();
        else tally.skipped += 1;
      }
      done[index] = Math.max(due, done[index] ?? 0);
    }
  };
}

/** Refreshes the line that changes, with the rate since it was last shown. */
function liveLine(tally: Tally, screen: Screen, elapsed: () => number): () => void {
  let shownAt = 0;
  let publishedThen = 0;
  return () => {
    const now = elapsed();
    if (now - shownAt < screen.refreshMs / 1_000) return;
    screen.live(progressLine(tally, now, (tally.published - publishedThen) / (now - shownAt)));
    shownAt = now;
    publishedThen = tally.published;
  };
}
