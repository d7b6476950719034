import { once } from 'node:events';
import { encodeConnect, encodeString, packetOf } from '../../../../bench/client/packets.ts';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

/** A user property without a name and a value: nothing takes more of them in as many bytes. */
const userProperty = Buffer.from([0x26, 0, 0, 0, 0]);
const propertyBytes = 65_000;

/** A PUBLISH of MQTT 5 with as many properties as it has room for. */
function publish(topic: string): Buffer {
  const field = Buffer.alloc(propertyBytes, userProperty);
  // Section 1.5.5: a length of three bytes.
  const length = [
    (propertyBytes & 127) | 128,
    ((propertyBytes >> 7) & 127) | 128,
    propertyBytes >> 14,
  ];
  const payload = Buffer.from('{"sId":"0x1","val":1}');
  return packetOf(0x32, [encodeString(topic), Buffer.from([0, 1, ...length]), field, payload]);
}

export const v5Properties: NoisyKind = {
  name: 'v5-properties',
  says: '20 devices that speak MQTT 5 and publish values with 64 KiB of properties, as fast as they can',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    return (signal) =>
      work(20, signal, async (worker) => {
        const { uuid = '', token = '' } = devices[worker] ?? {};
        const login = { clientId: uuid, username: uuid, password: token, keepaliveSeconds: 60 };
        const packet = publish(`devices/${uuid}/up/measurements`);
        const socket = enemy.dial(enemy.mqttPort).resume();
        const closed = once(socket, 'close').catch(() => undefined);
        socket.write(encodeConnect({ ...login, version: 5 }));
        while (!socket.destroyed && !signal.aborted) {
          enemy.tally.count('packets', 1);
          if (!socket.write(packet))
            await Promise.race([once(socket, 'drain').catch(() => undefined), closed]);
          await new Promise(setImmediate);
        }
      });
  },
};
