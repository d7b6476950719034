import { createReadings, demand, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';

/** Each measurement moves the device, so that each is an episode of its own. */
const purpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: [
      eventOf(1, { actions: { cloud: { sendPush: true }, engine: { gotoStId: 3 - stId } } }),
    ],
  })),
};

export const pushStorm: NoisyKind = {
  name: 'push-storm',
  says: 'a push to 100 telephones with each measurement',
  quotaBytes: () => 1_000 * 2_000,
  async setUp(enemy) {
    const apn = Array.from({ length: 100 }, (_, n) => ({ token: `${n}`.padStart(512, 'x') }));
    await demand(enemy, 'PUT', '/v2/accounts', { body: { name: 'noisy', apn } });
    const devices = await registerDevices(enemy, 10);
    await install(enemy, devices, [purpose]);
    const readings = createReadings();
    return (signal) =>
      flood(
        enemy,
        { devices, ratePerSecond: 100, payload: (device) => readings(device, 5) },
        signal,
      );
  },
};
