import { once } from 'node:events';
import { encodeConnect } from '../../../../bench/client/packets.ts';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

export const reconnects: NoisyKind = {
  name: 'reconnects',
  says: '64 loops in which devices connect and go at once, with right and with wrong tokens',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 16);
    return (signal) =>
      work(64, signal, async (worker, turn) => {
        const { uuid = '', token = '' } = devices[worker % devices.length] ?? {};
        const password = turn % 4 === 3 ? 'wrong' : token;
        const socket = enemy.dial(enemy.mqttPort);
        const answered = Promise.race([once(socket, 'data'), once(socket, 'close')]);
        socket.write(
          encodeConnect({ clientId: uuid, username: uuid, password, keepaliveSeconds: 60 }),
        );
        await answered.catch(() => undefined);
        enemy.tally.count('answered');
        socket.resetAndDestroy();
      });
  },
};
