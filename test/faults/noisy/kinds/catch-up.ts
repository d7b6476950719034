import { flood, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';

const each = 50;
const weekSeconds = 604_800;

export const catchUp: NoisyKind = {
  name: 'catch-up',
  says: 'devices that were away for a week and send what they kept, in messages of 50 and one by one',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const sent = devices.map(() => 0);
    const startTs = Date.now() - weekSeconds * 1_000;
    const payload = (device: number) => {
      const first = sent[device] ?? 0;
      const count = device % 2 === 0 ? each : 1;
      if (first + count > weekSeconds) return null;
      sent[device] = first + count;
      const values = Array.from({ length: count }, (_, n) => ({
        sId: '0x01',
        val: (first + n) % 1_000,
        ts: startTs + (first + n) * 1_000,
      }));
      return JSON.stringify(values);
    };
    return (signal) => flood(enemy, { devices, inFlight: 20, payload }, signal);
  },
};
