import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';
import { smsSettings, startReceiver } from '../receiver.ts';

const phoneNumber = Array.from({ length: 10 }, (_, n) => `+4917012345${n}0`);
const sms = { text: 'noise', phoneNumber };
/** 64 events of 10 numbers, the last of which moves the device: 640 SMS a measurement. */
const purpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: Array.from({ length: 64 }, (_, e) =>
      eventOf(e + 1, { actions: { sms, ...(e === 63 ? { engine: { gotoStId: 3 - stId } } : {}) } }),
    ),
  })),
};

export const messageAmplification: NoisyKind = {
  name: 'message-amplification',
  says: 'messages of 60 measurements that ask for 38,400 SMS each',
  settings: smsSettings,
  async setUp(enemy) {
    await startReceiver(enemy);
    const devices = await registerDevices(enemy, 2);
    await install(enemy, devices, [purpose]);
    const readings = createReadings();
    return (signal) =>
      flood(
        enemy,
        { devices, inFlight: 2, ratePerSecond: 4, payload: (device) => readings(device, 60) },
        signal,
      );
  },
};
