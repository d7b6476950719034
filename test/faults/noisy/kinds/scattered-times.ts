import { flood, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';

const dayMs = 86_400_000;

/** Each item falls into a day of its own, of those that are kept: where days are tables, into many tables. */
export const scatteredTimes: NoisyKind = {
  name: 'scattered-times',
  says: 'measurements spread over all the days that are kept',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const startTs = Date.now();
    let sent = 0;
    const payload = () => {
      const items = Array.from({ length: 200 }, () => {
        sent += 1;
        const ts = startTs - (sent % 88) * dayMs - sent;
        return { sId: '0x01', val: sent % 1_000, ts };
      });
      return JSON.stringify(items);
    };
    return (signal) => flood(enemy, { devices, inFlight: 2, payload }, signal);
  },
};
