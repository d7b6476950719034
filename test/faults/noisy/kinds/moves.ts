import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';
import { eventBytes, eventsWithin } from '../quota-bytes.ts';

/** Nothing is logged: that a device moved is recorded all the same. */
const purpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: [eventOf(1, { actions: { engine: { gotoStId: 3 - stId } } })],
  })),
};

export const moves: NoisyKind = {
  name: 'moves',
  says: '20 devices that change their state with each measurement, 200 in a message',
  quotaBytes: (seconds) => eventsWithin(seconds) * eventBytes,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    await install(enemy, devices, [purpose]);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 2, payload: (device) => readings(device, 200) }, signal);
  },
};
