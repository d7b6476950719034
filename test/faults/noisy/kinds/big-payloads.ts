import { flood, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';

const sizes = [65_000, 262_144];

/** Half of them within the size of a packet, half of them four times as large. */
export const bigPayloads: NoisyKind = {
  name: 'big-payloads',
  says: '20 devices that send payloads of 64 and of 256 KiB',
  quotaBytes: () => 20 * 2 * 1_048_576,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 20);
    const texts = sizes.map((size) => JSON.stringify({ sId: 'x'.repeat(size - 20), val: 1 }));
    return (signal) =>
      flood(enemy, { devices, payload: (device) => texts[device % 2] ?? null }, signal);
  },
};
