import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

const devicesOfImport = 20;
const lines = 50_000;

export const imports: NoisyKind = {
  name: 'imports',
  says: 'imports of 50,000 lines one after the other: new ones, the same again, and lines that are wrong',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, devicesOfImport);
    const headers = { 'Content-Type': 'text/csv' };
    const fromTs = Date.now() - 60 * 86_400_000;
    const bodyOf = (round: number) => {
      const made = Array.from({ length: lines }, (_, n) => {
        const uuid = devices[n % devicesOfImport]?.uuid ?? '';
        return `${uuid},0x01,${fromTs + (round * lines + n) * 10},${n % 50},,`;
      });
      return ['deviceAuthUuid,sId,ts,val,lat,long', ...made].join('\n');
    };
    // Each of these costs most where as many as may be come in one piece.
    const wrong = `deviceAuthUuid,sId,ts,val\n${'x\n'.repeat(lines * 10)}`;
    return async (signal) => {
      let round = 0;
      await work(1, signal, async () => {
        const body = bodyOf((round += 1));
        for (const sent of [body, body, wrong])
          await enemy.ask('POST', '/v2/measurements/import', { headers, body: sent });
      });
    };
  },
};
