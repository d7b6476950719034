import { once } from 'node:events';
import { encodeConnect, encodeSubscribe } from '../../../../bench/client/packets.ts';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

/** In one write: 200 SUBSCRIBE packets of 16 filters, each of which brings profile, state and configuration again. */
const subscribesAWrite = 200;

export const subscribeStorm: NoisyKind = {
  name: 'subscribe-storm',
  says: '20 devices that subscribe to everything again and again',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    return (signal) =>
      work(20, signal, async (worker) => {
        const { uuid = '', token = '' } = devices[worker] ?? {};
        const topics = ['#', 'profile', 'configuration', 'state', 'display', 'errors', '+', 'x'];
        const filters = topics.map((topic) => `devices/${uuid}/down/${topic}`);
        const socket = enemy.dial(enemy.mqttPort).resume();
        const closed = once(socket, 'close').catch(() => undefined);
        socket.write(
          encodeConnect({ clientId: uuid, username: uuid, password: token, keepaliveSeconds: 60 }),
        );
        while (!socket.destroyed && !signal.aborted) {
          const packets = Array.from({ length: subscribesAWrite }, (_, n) =>
            encodeSubscribe(n + 1, filters, 1),
          );
          enemy.tally.count('subscribed', subscribesAWrite);
          if (!socket.write(Buffer.concat(packets)))
            await Promise.race([once(socket, 'drain').catch(() => undefined), closed]);
          await new Promise(setImmediate);
        }
      });
  },
};
