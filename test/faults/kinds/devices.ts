import { setTimeout as delay } from 'node:timers/promises';
import { runOn } from '../../support/template.ts';
import { ask, expectHolds, runFor, runForAll } from '../fault.ts';
import type { Fault } from '../fault.ts';
import type { World } from '../world.ts';

/** The device never receives the acknowledgement of a stored message, and sends it again. */
export const acknowledgementLost: Fault = {
  name: 'ack-lost',
  sparesDeliveries: true,
  promise: 'a message that is sent again is stored once and evaluated once',
  world: { deviceProxy: true },
  short: { times: 2, awaySeconds: 0 },
  long: { times: 30, awaySeconds: 0 },
  async inflict(world, { times }) {
    const { deviceProxy, load, devices } = world;
    if (!deviceProxy) throw new Error('This fault is in the network between devices and service.');
    for (let time = 0; time < times; time++) {
      await runFor(world, 300);
      deviceProxy.deafen();
      // One message of each device, on average; each has up to five in flight.
      while ((await countUnheard(world)) < devices.length) await delay(20);
      await load.cut(1);
      deviceProxy.heal();
      await load.online(devices.length);
    }
    await runFor(world, 300);
    return { times };
  },
};

/** How many messages are stored but not acknowledged. */
async function countUnheard({ cluster, load, devices }: World): Promise<number> {
  const { rows } = await runOn(cluster.url(), (client) =>
    client.query<{ count: string }>(
      `select count(*) from measurement m join series s on s.id = m.series_id join device d on d.id = s.device_id
        where d.uuid = any ($1)`,
      [devices.map(({ uuid }) => uuid)],
    ),
  );
  return Number(rows[0]?.count) - load.counts().acknowledged;
}

/** All devices are disconnected at once and reconnect at once. */
export const reconnectStorm: Fault = {
  name: 'reconnect-storm',
  promise: 'all devices are online within 60 s; meanwhile the p99 of REST is under 1 s',
  limits: { 'slowest ms': 60_000, 'REST p99 ms': 1_000 },
  short: { times: 1, awaySeconds: 0 },
  long: { times: 3, awaySeconds: 0 },
  async inflict(world, { times }) {
    let slowest = 0;
    const answers: number[] = [];
    for (let time = 0; time < times; time++) {
      await runForAll(world);
      const since = performance.now();
      await world.load.cut(1);
      const online = world.load.online(world.devices.length).then(() => true);
      do {
        const { status, ms } = await ask(world, '/v2/accounts');
        expectHolds(status === 200, `REST answers 200 meanwhile, was ${status}`);
        answers.push(ms);
      } while (!(await Promise.race([online, delay(20).then(() => false)])));
      slowest = Math.max(slowest, Math.round(performance.now() - since));
    }
    const p99 = answers.sort((a, b) => a - b)[Math.floor(answers.length * 0.99)] ?? 0;
    return { times, 'slowest ms': slowest, 'REST p99 ms': p99 };
  },
};
