import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';
import { work } from '../workers.ts';

const purpose = {
  puId: 1,
  initStId: 1,
  states: [{ stId: 1, events: [eventOf(1, { eventLog: true })] }],
};

export const eventStreams: NoisyKind = {
  name: 'event-streams',
  says: '1,500 attempts at an event stream at once, with ten events a second',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 1);
    await install(enemy, devices, [purpose]);
    const readings = createReadings();
    return async (signal) => {
      await Promise.all([
        flood(
          enemy,
          { devices, ratePerSecond: 10, payload: (device) => readings(device, 1) },
          signal,
        ),
        work(1_500, signal, () => enemy.ask('GET', '/v2/events/stream', { isDiscarded: true })),
      ]);
    };
  },
};
