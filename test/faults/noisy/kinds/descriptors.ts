import type { Enemy } from '../enemy.ts';
import type { NoisyKind } from '../kind.ts';
import { enough, pause } from '../workers.ts';

const addresses = 10;
const connections = 4_000;

/** What is written on a connection that then stays as it is. */
const forms = [
  '',
  'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET /livez HTTP/1.1\r\nHost:',
  'POST /v2/accounts/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n',
];

function hold(enemy: Enemy, n: number, signal: AbortSignal): void {
  if (signal.aborted) return;
  // A quarter of them on the port of MQTT, where they say nothing.
  const isMqtt = n % 4 === 3;
  const port = isMqtt ? enemy.mqttPort : Number(new URL(enemy.url).port);
  const socket = enemy.dial(port, `127.9.${n % addresses}.1`).resume();
  enemy.tally.count('opened');
  if (!isMqtt) socket.write(forms[(n >> 2) % forms.length] ?? '');
  socket.once('close', () => setTimeout(hold, 500, enemy, n, signal).unref());
}

export const descriptors: NoisyKind = {
  name: 'descriptors',
  says: '4,000 connections from 10 addresses that stay, to a service that may open 2,048 files',
  openFiles: 2_048,
  setUp: async (enemy) => async (signal) => {
    for (let n = 0; n < connections && !signal.aborted; n++) {
      hold(enemy, n, signal);
      if (n % 100 === 99) await pause(20, signal);
    }
    await enough(signal);
  },
};
