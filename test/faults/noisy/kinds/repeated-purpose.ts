import { demand, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { bigPurpose } from '../purposes.ts';
import { work } from '../workers.ts';

export const repeatedPurpose: NoisyKind = {
  name: 'repeated-purpose',
  says: 'installs that name one stored purpose of 250 kB 256 times',
  async setUp(enemy) {
    const [device] = await registerDevices(enemy, 1);
    const { text } = await demand(enemy, 'POST', '/v2/purposes', { body: bigPurpose(230_000) });
    const { purposeUuid } = JSON.parse(text) as { purposeUuid: string };
    const purposeUuids = Array.from({ length: 256 }, () => purposeUuid);
    const body = { deviceAuthUuids: [device?.uuid], purposeUuids };
    return (signal) => work(8, signal, () => enemy.ask('POST', '/v2/devices/profile', { body }));
  },
};
