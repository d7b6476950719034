import { encodeConnect, encodeSubscribe } from '../../../../bench/client/packets.ts';
import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';

const purpose = {
  puId: 1,
  initStId: 1,
  states: [1, 2].map((stId) => ({
    stId,
    events: [
      eventOf(1, {
        actions: { display: { showText: 'x'.repeat(1_000) }, engine: { gotoStId: 3 - stId } },
      }),
    ],
  })),
};

/** Three connections of each device read nothing; the fourth sends what makes the service tell it things. */
export const slowReader: NoisyKind = {
  name: 'slow-reader',
  says: '20 devices on 60 connections that never read what they are told, 1 kB a measurement',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    await install(enemy, devices, [purpose]);
    const readings = createReadings();
    return async (signal) => {
      for (const { uuid, token } of devices) {
        for (let n = 0; n < 3; n++) {
          const socket = enemy.dial(enemy.mqttPort).pause();
          const clientId = `${uuid}-${n}`;
          socket.write(
            Buffer.concat([
              encodeConnect({ clientId, username: uuid, password: token, keepaliveSeconds: 600 }),
              encodeSubscribe(1, [`devices/${uuid}/down/#`], 1),
            ]),
          );
        }
      }
      await flood(enemy, { devices, payload: (device) => readings(device, 20) }, signal);
    };
  },
};
