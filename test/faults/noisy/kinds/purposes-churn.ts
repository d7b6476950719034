import { demand } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { bigPurpose } from '../purposes.ts';
import { work } from '../workers.ts';

const loops = 8;

export const purposesChurn: NoisyKind = {
  name: 'purposes-churn',
  says: 'replaces stored purposes of 250 kB again and again',
  async setUp(enemy) {
    const bodies = ['a', 'b'].map((seed) => JSON.stringify(bigPurpose(230_000, seed)));
    const uuids: string[] = [];
    for (let n = 0; n < loops; n++) {
      const { text } = await demand(enemy, 'POST', '/v2/purposes', { body: bodies[0] });
      uuids.push((JSON.parse(text) as { purposeUuid: string }).purposeUuid);
    }
    return (signal) =>
      work(loops, signal, (worker, turn) =>
        enemy.ask('PUT', `/v2/purposes/${uuids[worker]}`, { body: bodies[turn % 2] }),
      );
  },
};
