import { flood, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';

export const sameMillisecond: NoisyKind = {
  name: 'same-millisecond',
  says: 'different values of a sense that share one millisecond, as many as have room and more',
  quotaBytes: () => 10 * 2 * 1_048_576,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const ts = Date.now() - 60_000;
    let val = 0;
    const payload = () =>
      JSON.stringify(Array.from({ length: 500 }, () => ({ sId: '0x01', val: ++val, ts })));
    return (signal) => flood(enemy, { devices, inFlight: 2, payload }, signal);
  },
};
