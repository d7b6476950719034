import { createBefore } from '../before.ts';
import type { NoisyKind } from '../kind.ts';
import { enough } from '../workers.ts';

const connections = 200;

export const slowDownloads: NoisyKind = {
  name: 'slow-downloads',
  says: '200 lists of 5,000 devices that are asked for and never read',
  async setUp(enemy) {
    await createBefore(enemy).addDevices(5_000, 200);
    const port = Number(new URL(enemy.url).port);
    const asked =
      'GET /v2/devices HTTP/1.1\r\nHost: x\r\n' +
      `Authorization: Bearer ${enemy.account.token}\r\n\r\n`;
    return async (signal) => {
      // Pipelined: each connection asks ten times before it reads nothing.
      for (let n = 0; n < connections; n++) enemy.dial(port).pause().write(asked.repeat(10));
      await enough(signal);
    };
  },
};
