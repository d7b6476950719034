import { createReadings, flood, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';

const each = 50;

export const catchUp: NoisyKind = {
  name: 'catch-up',
  says: 'devices that were away for a week and send what they kept, in messages of 50 and one by one',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const readings = createReadings();
    return (signal) =>
      flood(
        enemy,
        {
          devices,
          inFlight: 20,
          payload: (device) => readings(device, device % 2 === 0 ? each : 1),
        },
        signal,
      );
  },
};
