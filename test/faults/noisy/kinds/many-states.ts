import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';

/** As many as a purpose may have. */
const count = 256;

/** Each value leads on to the next state. */
const round = {
  puId: 1,
  initStId: 1,
  states: Array.from({ length: count }, (_, n) => ({
    stId: n + 1,
    events: [eventOf(1, { actions: { engine: { gotoStId: ((n + 1) % count) + 1 } } })],
  })),
};

export const manyStates: NoisyKind = {
  name: 'many-states',
  says: '8 devices that walk through 256 states, a state with each measurement',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 8);
    await install(enemy, devices, [round]);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 4, payload: (device) => readings(device, 200) }, signal);
  },
};
