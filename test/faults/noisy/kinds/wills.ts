import { once } from 'node:events';
import { encodeString, packetOf } from '../../../../bench/client/packets.ts';
import { createReadings, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

/** MQTT 3.1.1, section 3.1.2: user name, password, a will of QoS 1, and a clean session. */
const flags = 0x80 | 0x40 | 0x08 | 0x04 | 0x02;
/** Small enough for a packet of somebody who is not let in yet. */
const readingsAWill = 60;

export const wills: NoisyKind = {
  name: 'wills',
  says: '32 loops in which devices connect with a will of 60 measurements and are cut off',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 16);
    const readings = createReadings();
    return (signal) =>
      work(32, signal, async (worker) => {
        const n = worker % devices.length;
        const { uuid = '', token = '' } = devices[n] ?? {};
        const will = [`devices/${uuid}/up/measurements`, readings(n, readingsAWill)];
        const socket = enemy.dial(enemy.mqttPort);
        const answered = Promise.race([once(socket, 'data'), once(socket, 'close')]);
        const header = Buffer.from([0, 4, 0x4d, 0x51, 0x54, 0x54, 4, flags, 0, 60]);
        const fields = [uuid, ...will, uuid, token].map(encodeString);
        socket.write(packetOf(0x10, [header, ...fields]));
        await answered.catch(() => undefined);
        enemy.tally.count('answered');
        socket.resetAndDestroy();
      });
  },
};
