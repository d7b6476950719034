import { setTimeout as delay } from 'node:timers/promises';
import { ask, expectHolds, runFor } from '../fault.ts';
import type { Fault } from '../fault.ts';

/** The device never hears that its message was stored, and sends it again. */
export const acknowledgementLost: Fault = {
  name: 'ack-lost',
  promise: 'stored once, evaluated once',
  short: { times: 2, awaySeconds: 0 },
  long: { times: 30, awaySeconds: 0 },
  async inflict(world, { times }) {
    for (let time = 0; time < times; time++) {
      await runFor(world, 300);
      world.mqttProxy.deafen();
      // Long enough for what is under way to be committed, unheard.
      await delay(300);
      world.mqttProxy.cut();
      world.mqttProxy.heal();
      await world.load.online(world.devices.length);
    }
    await runFor(world, 300);
    return { times };
  },
};

/** Everybody is cut off at once and comes back at once. */
export const reconnectStorm: Fault = {
  name: 'reconnect-storm',
  promise: 'all online within 60 s; REST p99 under 1 s meanwhile',
  limits: { 'slowest ms': 60_000, 'REST p99 ms': 1_000 },
  short: { times: 1, awaySeconds: 0 },
  long: { times: 3, awaySeconds: 0 },
  async inflict(world, { times }) {
    let slowest = 0;
    const answers: number[] = [];
    for (let time = 0; time < times; time++) {
      await runFor(world, 300);
      world.mqttProxy.cut();
      world.mqttProxy.heal();
      const since = performance.now();
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
