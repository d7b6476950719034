import { encodeConnect } from '../../../../bench/client/packets.ts';
import type { NoisyKind } from '../kind.ts';
import { enough, pause } from '../workers.ts';

/** A machine that is in command of a /16 has them all. */
const addresses = 200;
const connections = 4_000;

export const manyAddresses: NoisyKind = {
  name: 'many-addresses',
  says: '4,000 connections from 200 addresses that give wrong tokens',
  setUp: async (enemy) => {
    const packet = encodeConnect({
      clientId: 'x',
      username: '9b2f7c38-7e1f-4b43-9d3b-0d6f9e2b3f10',
      password: 'wrong',
      keepaliveSeconds: 60,
    });
    return async (signal) => {
      const open = (n: number) => {
        if (signal.aborted) return;
        const socket = enemy.dial(enemy.mqttPort, `127.9.${n % addresses}.1`).resume();
        enemy.tally.count('opened');
        socket.write(packet);
        socket.once('close', () => setTimeout(open, 50, n).unref());
      };
      for (let n = 0; n < connections && !signal.aborted; n++) {
        open(n);
        if (n % 100 === 99) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};
