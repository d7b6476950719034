import { createBefore } from '../before.ts';
import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';

/** 64 events of 32 causes: 2,048 windows of 1,000, and none of them ever agrees. */
const purpose = {
  puId: 1,
  initStId: 1,
  states: [
    {
      stId: 1,
      events: Array.from({ length: 64 }, (_, e) =>
        eventOf(e + 1, {
          causes: 32,
          threshold: { count: 500 },
          thresholds: { isGt: e * 10 },
        }),
      ).map((event) => ({
        ...event,
        causes: event.causes.map((cause) => ({ ...cause, measurement: { count: 1_000 } })),
      })),
    },
  ],
};

/** Refused by the quota today; a stored profile from before it still runs. */
export const evidence: NoisyKind = {
  name: 'evidence',
  says: '20 devices with 2,048 causes that count to 1,000, stored from before',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    await install(enemy, devices, [
      { puId: 1, initStId: 1, states: [{ stId: 1, events: [eventOf(1)] }] },
    ]);
    await createBefore(enemy).replaceProfiles([purpose]);
    const readings = createReadings();
    return (signal) => flood(enemy, { devices, payload: (device) => readings(device, 5) }, signal);
  },
};
