import { install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';
import { eventBytes, eventsWithin } from '../quota-bytes.ts';
import { enough } from '../workers.ts';

/** Two states that send a device back and forth on a silence of a second, with 63 more events that wait for it. */
const purpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: Array.from({ length: 64 }, (_, n) =>
      eventOf(n + 1, {
        eventLog: true,
        thresholds: {},
        threshold: { noneForMs: 1_000 },
        actions: n === 63 ? { engine: { gotoStId: 3 - stId } } : {},
      }),
    ),
  })),
};

export const silences: NoisyKind = {
  name: 'silences',
  says: '1,000 devices of which nothing is heard, with 64 events each that wait for a second of it, again and again',
  quotaBytes: (seconds) => eventsWithin(seconds) * eventBytes,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 1_000);
    return async (signal) => {
      // They begin to wait when it is installed.
      await install(enemy, devices, [purpose]);
      await enough(signal);
    };
  },
};
