import { flood, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';

const payload = `[${Array.from({ length: 1_000 }, () => 1).join()}]`;
const devices = 10;
/** Of `rejectionBytesPerDevice`, and the indexes beside it. */
const rejectionBytes = 2 * 1_048_576;

export const badItems: NoisyKind = {
  name: 'bad-items',
  says: 'messages of 1,000 items that are no measurements',
  quotaBytes: () => devices * rejectionBytes,
  async setUp(enemy) {
    const senders = await registerDevices(enemy, devices);
    return (signal) => flood(enemy, { devices: senders, payload: () => payload }, signal);
  },
};
