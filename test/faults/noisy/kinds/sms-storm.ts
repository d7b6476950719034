import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { EnemyDevice } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';
import { startReceiver, smsSettings } from '../receiver.ts';

const accounts = 10;
const phoneNumber = ['+491701234567', '+19005551234', 'whatsapp:+491701234567', 'client:admin'];
/** Each measurement moves the device, so that each is an episode of its own. */
const purpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: [
      eventOf(1, {
        actions: { sms: { text: 'noise', phoneNumber }, engine: { gotoStId: 3 - stId } },
      }),
    ],
  })),
};

export const smsStorm: NoisyKind = {
  name: 'sms-storm',
  says: '10 accounts whose devices ask for an SMS with each measurement',
  settings: smsSettings,
  async setUp(enemy) {
    await startReceiver(enemy);
    const devices: EnemyDevice[] = [];
    for (let n = 0; n < accounts; n++) {
      const account = await enemy.registerAccount();
      const own = await registerDevices(enemy, 1, { account });
      await install(enemy, own, [purpose], account);
      devices.push(...own);
    }
    const readings = createReadings();
    return (signal) =>
      flood(
        enemy,
        { devices, ratePerSecond: 200, payload: (device) => readings(device, 1) },
        signal,
      );
  },
};
