import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

const long = 'ä'.repeat(200);
const senses = Array.from({ length: 100 }, (_, n) => ({ sId: `0x${n.toString(16)}` }));
const body = {
  device: { name: long, serial: long },
  module: [{ moduleId: long, moduleName: long, senses }],
};

export const manyDevices: NoisyKind = {
  name: 'many-devices',
  says: 'registers devices with long names as fast as it can',
  setUp: async (enemy) => (signal) =>
    work(32, signal, () => enemy.ask('POST', '/v2/devices', { body })),
};
