import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

export const requestsPerSecond: NoisyKind = {
  name: 'requests-per-second',
  says: '64 connections that ask as fast as they are answered',
  async setUp(enemy) {
    const [device] = await registerDevices(enemy, 1);
    const paths = [
      '/v2/devices',
      '/v2/purposes',
      '/v2/accounts/usage',
      `/v2/events/${device?.uuid}`,
      `/v2/devices/${device?.uuid}/configuration`,
      `/v2/devices/${device?.uuid}/rejections`,
    ];
    return (signal) =>
      work(64, signal, (worker, turn) =>
        enemy.ask('GET', paths[(worker + turn) % paths.length] ?? '/', { isDiscarded: true }),
      );
  },
};
