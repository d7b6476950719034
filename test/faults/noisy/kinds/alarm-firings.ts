import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { purposeOf } from '../purposes.ts';
import { alarmBytes, alarmChangeBytes, firingsWithin } from '../quota-bytes.ts';

const devices = 20;
const alarms = 256;
/** Each value fires all of them; none is recorded, and none ever ends. */
const purpose = purposeOf(alarms, () => ({ actions: { alarm: true }, name: 'x'.repeat(200) }));

export const alarmFirings: NoisyKind = {
  name: 'alarm-firings',
  says: '20 devices with 256 alarms that stay open, each of which fires with every value',
  quotaBytes: (seconds) =>
    devices * alarms * alarmBytes + firingsWithin(seconds) * alarmChangeBytes,
  async setUp(enemy) {
    const registered = await registerDevices(enemy, devices);
    await install(enemy, registered, [purpose]);
    const readings = createReadings();
    return (signal) =>
      flood(enemy, { devices: registered, payload: (device) => readings(device, 1) }, signal);
  },
};
