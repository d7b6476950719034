import { demand, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { bigPurpose } from '../purposes.ts';
import { each, work } from '../workers.ts';

/** As many bytes as `purposeBytes` has room for. */
const bytes = 120_000;

export const manyPurposes: NoisyKind = {
  name: 'many-purposes',
  says: 'installs that name 256 stored purposes of 120 kB, again and again',
  async setUp(enemy) {
    const [device] = await registerDevices(enemy, 1);
    const purposeUuids: string[] = [];
    await each(Array.from({ length: 256 }).keys(), 4, async (n) => {
      const body = { ...bigPurpose(bytes, String(n)), puId: n };
      const { text } = await demand(enemy, 'POST', '/v2/purposes', { body });
      purposeUuids.push((JSON.parse(text) as { purposeUuid: string }).purposeUuid);
    });
    const body = { deviceAuthUuids: [device?.uuid], purposeUuids };
    return (signal) => work(4, signal, () => enemy.ask('POST', '/v2/devices/profile', { body }));
  },
};
