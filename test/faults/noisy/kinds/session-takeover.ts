import { once } from 'node:events';
import { encodeConnect, encodeString, writePublish } from '../../../../bench/client/packets.ts';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

/** Each message is under way when its connection is taken over, so it is read, and nobody hears of it. */
export const sessionTakeover: NoisyKind = {
  name: 'session-takeover',
  says: '32 loops in which devices send a message and are gone before it is acknowledged',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 64);
    const startTs = Date.now() - 3_600_000;
    let sent = 0;
    return (signal) =>
      work(32, signal, async (worker, turn) => {
        const { uuid = '', token = '' } = devices[(worker + 32 * turn) % devices.length] ?? {};
        const items = Array.from({ length: 500 }, () => ({
          sId: '0x01',
          val: 1,
          ts: startTs + ++sent,
        }));
        const buffer = Buffer.alloc(65_536);
        const topic = encodeString(`devices/${uuid}/up/measurements`);
        const end = writePublish(buffer, 0, topic, 1, JSON.stringify(items));
        const socket = enemy.dial(enemy.mqttPort);
        socket.write(
          encodeConnect({ clientId: uuid, username: uuid, password: token, keepaliveSeconds: 60 }),
        );
        const answered = once(socket, 'data').catch(() => undefined);
        await Promise.race([answered, once(socket, 'close').catch(() => undefined)]);
        if (!socket.destroyed) socket.write(buffer.subarray(0, end), () => socket.destroy());
        enemy.tally.count('left');
      });
  },
};
