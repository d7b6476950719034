import { expectHolds, runFor, timeToAck } from '../fault.ts';
import type { Fault } from '../fault.ts';

/** The process is killed again and again, whatever it is doing. */
export const serviceKilled: Fault = {
  name: 'kill9',
  promise: 'the service is back and accepts messages within 5 s',
  limits: { 'slowest start ms': 5_000 },
  short: { times: 2, awaySeconds: 0 },
  long: { times: 50, awaySeconds: 0 },
  async inflict(world, { times }) {
    let slowest = 0;
    for (let time = 0; time < times; time++) {
      await runFor(world, 500);
      await world.service.kill();
      const since = performance.now();
      await world.service.start();
      slowest = Math.max(slowest, performance.now() - since);
      await timeToAck(world);
    }
    return { times, 'slowest start ms': Math.round(slowest) };
  },
};

/** Stopped while messages are in flight. */
export const serviceTerminated: Fault = {
  name: 'sigterm',
  promise:
    'the process exits with 0 within 10 s; it acknowledges no message in flight without storing it',
  limits: { 'slowest stop ms': 10_000 },
  short: { times: 1, awaySeconds: 0 },
  long: { times: 10, awaySeconds: 0 },
  async inflict(world, { times }) {
    let slowest = 0;
    for (let time = 0; time < times; time++) {
      await runFor(world, 500);
      const since = performance.now();
      const code = await world.service.terminate();
      slowest = Math.max(slowest, performance.now() - since);
      expectHolds(code === 0, `exit 0 after SIGTERM, was ${code}`);
      await world.service.start();
      await timeToAck(world);
    }
    return { times, 'slowest stop ms': Math.round(slowest) };
  },
};
