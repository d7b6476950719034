import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { purposeOf } from '../purposes.ts';
import { work } from '../workers.ts';

/** What one install writes for each device stays: how far the roll-out came. */
const devices = 1_000;

export const profileChurn: NoisyKind = {
  name: 'profile-churn',
  says: 'installs a small profile on 1,000 devices again and again',
  async setUp(enemy) {
    const uuids = (await registerDevices(enemy, devices)).map(({ uuid }) => uuid);
    return (signal) =>
      work(4, signal, (worker, turn) => {
        const purpose = purposeOf(1, () => ({ name: `${worker} ${turn}` }));
        const body = { deviceAuthUuids: uuids, purposes: [purpose] };
        return enemy.ask('POST', '/v2/devices/profile', { body });
      });
  },
};
