import { createBefore } from '../before.ts';
import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf, purposeOf } from '../purposes.ts';

const events = 4_000;

/** Refused by the quota today; a stored profile from before it still runs. */
export const anyEvents: NoisyKind = {
  name: 'any-events',
  says: 'messages of 20 measurements for 4,000 global events that any value fires, stored from before',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 4);
    await install(enemy, devices, [
      { puId: 1, initStId: 1, states: [{ stId: 1, events: [eventOf(1)] }] },
    ]);
    await createBefore(enemy).replaceProfiles([purposeOf(events)]);
    const readings = createReadings();
    return (signal) => flood(enemy, { devices, payload: (device) => readings(device, 20) }, signal);
  },
};
