import { createReadings, flood, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';

export const honestDiskFilling: NoisyKind = {
  name: 'honest-disk-filling',
  says: '50 devices that send measurements as fast as they may',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 50);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 5, payload: (device) => readings(device, 1_000) }, signal);
  },
};
