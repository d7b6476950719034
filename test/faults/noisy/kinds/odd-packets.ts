import { once } from 'node:events';
import { encodeConnect } from '../../../../bench/client/packets.ts';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

const pingsAWrite = 5_000;

/** PINGREQ, and PUBREC, PUBREL and PUBCOMP of messages that never were: two to four bytes each, and read alone. */
function packets(): Buffer {
  const one = [0xc0, 0, 0x50, 2, 0, 1, 0x62, 2, 0, 2, 0x70, 2, 0, 3];
  // UNSUBSCRIBE from "x".
  const unsubscribe = [0xa2, 5, 0, 4, 0, 1, 0x78];
  return Buffer.from(
    Array.from({ length: pingsAWrite / 5 }, () => [...one, ...unsubscribe]).flat(),
  );
}

export const oddPackets: NoisyKind = {
  name: 'odd-packets',
  says: '20 devices that send pings, unsubscribe, and acknowledge what they were never sent, as fast as they can',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    const flood = packets();
    return (signal) =>
      work(20, signal, async (worker) => {
        const { uuid = '', token = '' } = devices[worker] ?? {};
        const socket = enemy.dial(enemy.mqttPort).resume();
        const closed = once(socket, 'close').catch(() => undefined);
        socket.write(
          encodeConnect({ clientId: uuid, username: uuid, password: token, keepaliveSeconds: 60 }),
        );
        while (!socket.destroyed && !signal.aborted) {
          enemy.tally.count('packets', pingsAWrite);
          if (!socket.write(flood))
            await Promise.race([once(socket, 'drain').catch(() => undefined), closed]);
          await new Promise(setImmediate);
        }
      });
  },
};
