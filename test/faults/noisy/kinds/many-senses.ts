import { demand, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { purposeOf } from '../purposes.ts';
import { work } from '../workers.ts';

const senses = Array.from({ length: 1_024 }, (_, n) => ({ sId: `0x${n.toString(16)}` }));

export const manySenses: NoisyKind = {
  name: 'many-senses',
  says: 'installs on 4 devices of 1,024 senses, with 4,000 causes, again and again',
  async setUp(enemy) {
    const configuration = { device: {}, module: [{ moduleId: 'm', senses }] };
    const devices = await registerDevices(enemy, 4, { configuration });
    const purposeUuids: string[] = [];
    for (const puId of [1, 2]) {
      const optionsOf = (n: number) => {
        const sId = senses[n % senses.length]?.sId ?? '';
        return { sId, causes: 4, thresholds: { isGt: n } };
      };
      const body = purposeOf(500, optionsOf, { isGlobal: false, puId });
      const { text } = await demand(enemy, 'POST', '/v2/purposes', { body });
      purposeUuids.push((JSON.parse(text) as { purposeUuid: string }).purposeUuid);
    }
    const body = { deviceAuthUuids: devices.map(({ uuid }) => uuid), purposeUuids };
    return (signal) => work(2, signal, () => enemy.ask('POST', '/v2/devices/profile', { body }));
  },
};
