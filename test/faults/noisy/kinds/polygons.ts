import { flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { purposeOf } from '../purposes.ts';

const corners = 900;
const isInsideGeo = Array.from({ length: corners }, (_, n) => {
  const angle = (2 * Math.PI * n) / corners;
  return {
    lat: Math.round(1e3 * Math.sin(angle)) / 100,
    long: Math.round(1e3 * Math.cos(angle)) / 100,
  };
});

export const polygons: NoisyKind = {
  name: 'polygons',
  says: 'messages of 500 positions for 5 polygons of 900 corners',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 4);
    await install(enemy, devices, [purposeOf(5, () => ({ thresholds: { isInsideGeo } }))]);
    const startTs = Date.now() - 3_600_000;
    let sent = 0;
    const payload = () => {
      const items = Array.from({ length: 500 }, () => {
        sent += 1;
        const val = { lat: sent % 20, long: (sent % 36) - 18 };
        return { sId: '0x01', val, ts: startTs + sent };
      });
      return JSON.stringify(items);
    };
    return (signal) => flood(enemy, { devices, inFlight: 2, payload }, signal);
  },
};
