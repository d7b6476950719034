import { encodeConnect } from '../../../../bench/client/packets.ts';
import type { NoisyKind } from '../kind.ts';
import { enough, pause } from '../workers.ts';

const addresses = 40;
/** At once, of each of these addresses. */
const connections = 100;
const againMs = 500;

/** Half of them say nothing and are reset at once, half give a wrong token; each begins again when it has ended. */
export const mqttFlood: NoisyKind = {
  name: 'mqtt-flood',
  says: '4,000 MQTT connections from 40 addresses, silent or with wrong tokens, made again as soon as they end',
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
        const socket = enemy.dial(enemy.mqttPort, `127.8.${n % addresses}.1`).resume();
        enemy.tally.count('opened');
        if (n % 2 === 0) socket.write(packet);
        else socket.once('connect', () => socket.resetAndDestroy());
        socket.once('close', () => setTimeout(open, againMs, n).unref());
      };
      for (let n = 0; n < addresses * connections && !signal.aborted; n++) {
        open(n);
        if (n % 100 === 99) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};
