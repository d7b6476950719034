import { flood, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventBytes, eventsWithin } from '../quota-bytes.ts';

export const reportedStates: NoisyKind = {
  name: 'reported-states',
  says: '50 devices that report another state with each message',
  quotaBytes: (seconds) => eventsWithin(seconds) * eventBytes,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 50);
    const payload = (_device: number, seq: number) =>
      JSON.stringify({ puId: 1, stId: seq % 1_000, ts: Date.now() });
    return (signal) => flood(enemy, { devices, topic: 'state', payload }, signal);
  },
};
