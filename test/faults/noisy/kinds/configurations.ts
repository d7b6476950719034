import { flood, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';

const senses = Array.from({ length: 1_000 }, (_, n) => ({
  sId: `0x${n.toString(16)}`,
  min: 0,
  max: n,
}));

export const configurations: NoisyKind = {
  name: 'configurations',
  says: '20 devices that report another configuration of 40 kB with each message',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    const payload = (_device: number, seq: number) =>
      JSON.stringify({ device: { name: `noisy ${seq}` }, module: [{ moduleId: 'm', senses }] });
    return (signal) =>
      flood(enemy, { devices, topic: 'configuration', inFlight: 2, payload }, signal);
  },
};
