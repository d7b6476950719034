import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { purposeOf } from '../purposes.ts';
import { eventBytes, eventsWithin } from '../quota-bytes.ts';

export const eventAmplification: NoisyKind = {
  name: 'event-amplification',
  says: 'messages of 200 measurements (8 kB) for 256 logged events that any value fires',
  quotaBytes: (seconds) => eventsWithin(seconds) * eventBytes,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 2);
    await install(enemy, devices, [purposeOf(256, () => ({ eventLog: true }))]);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices, inFlight: 2, payload: (device) => readings(device, 200) }, signal);
  },
};
