import { createReadings, demand, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { purposeOf } from '../purposes.ts';
import { alarmBytes, alarmMessageBytes, eventsWithin } from '../quota-bytes.ts';

const events = 256;
/** `quotas.webhooksPerDay` */
const webhooksPerDay = 10_000;
/** Each value opens the alarms of half the events, and closes those of the others; nothing is recorded. */
const purpose = purposeOf(events, (n) => ({
  thresholds: n % 2 === 0 ? { isGt: 0 } : { isLt: 0 },
  actions: n % 4 < 2 ? { cloud: { sendPush: true } } : { alarm: true },
  name: 'x'.repeat(200),
}));

export const alarms: NoisyKind = {
  name: 'alarms',
  says: '20 devices that open and close 256 alarms with each pair of values, half of them told to 20 webhooks',
  quotaBytes: (seconds) => eventsWithin(seconds) * alarmBytes + webhooksPerDay * alarmMessageBytes,
  async setUp(enemy) {
    // Refused: a private address.
    const webhooks = Array.from({ length: 20 }, (_, n) => ({
      url: `http://localhost:${enemy.receiverPort}/${n}`,
      whenOver: true,
    }));
    await demand(enemy, 'PUT', '/v2/accounts/contacts', { body: { webhooks } });
    const devices = await registerDevices(enemy, 20);
    await install(enemy, devices, [purpose]);
    const readings = createReadings();
    return (signal) =>
      flood(
        enemy,
        { devices, payload: (device) => readings(device, 20, (n) => (n % 2 === 0 ? 1 : -1)) },
        signal,
      );
  },
};
