import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { purposeOf } from '../purposes.ts';

const isNotIn = Array.from({ length: 4_500 }, (_, n) => -n - 1);

export const longLists: NoisyKind = {
  name: 'long-lists',
  says: 'messages of 1,000 measurements for conditions that list 4,500 numbers',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 4);
    await install(enemy, devices, [purposeOf(4, () => ({ thresholds: { isNotIn } }))]);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 2, payload: (device) => readings(device, 1_000) }, signal);
  },
};
