import { createBefore } from '../before.ts';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

const atOnce = 100;
/** What others' lists may take, p99. */
const readMs = 1_000;

const lists = [
  '/v2/devices?limit=100&search=zzz&sort=-lastSeenTs&counts=true',
  '/v2/alarms?label=nobody',
  '/v2/devices?limit=100&sort=name&counts=true',
  '/v2/devices/labels',
];

export const listsAtOnce: NoisyKind = {
  name: 'lists-at-once',
  says: 'a hundred lists at once, of 10,000 devices and 200,000 closed alarms',
  readMs,
  async setUp(enemy) {
    const before = createBefore(enemy);
    await before.addDevices(10_000, 20);
    await before.addClosedAlarms(200_000);
    return (signal) =>
      work(atOnce, signal, (worker) =>
        enemy.ask('GET', lists[worker % lists.length] as string, { isDiscarded: true }),
      );
  },
};

export const changesAtOnce: NoisyKind = {
  name: 'changes-at-once',
  says: 'a hundred changes at once of an account, and of the configurations of 1,000 senses of its devices',
  readMs,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const senses = Array.from({ length: 1_000 }, (_, n) => ({ sId: `0x${n.toString(16)}` }));
    const body = { device: { name: 'noisy' }, module: [{ moduleId: 'm', senses }] };
    return (signal) =>
      work(atOnce, signal, (worker, turn) => {
        const device = devices[worker % devices.length];
        return worker % 2 === 0
          ? enemy.ask('PUT', '/v2/accounts', { body: { name: `noisy ${turn}` } })
          : enemy.ask('PUT', `/v2/devices/${device?.uuid}/configuration`, { body });
      });
  },
};
