import { createBefore } from '../before.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

export const bigLists: NoisyKind = {
  name: 'big-lists',
  says: 'six lists at once of 600 devices with names of 1 MB, stored from before',
  async setUp(enemy) {
    await createBefore(enemy).addDevices(600, 1_000_000);
    return (signal) =>
      work(6, signal, () => enemy.ask('GET', '/v2/devices', { isDiscarded: true }));
  },
};
