import { call } from '../../../bench/api.ts';
import { ask, expectHolds, runFor, timeToAck, watchMemory } from '../fault.ts';
import type { Fault } from '../fault.ts';
import type { World } from '../world.ts';

const promise = 'measurements continue; REST fails closed; no revoked token becomes valid again';
const path = '/v2/devices';

/** Redis stops and comes back empty: its sessions must log in again, and no ended session is valid. */
export const redisKilled: Fault = {
  name: 'redis-killed',
  promise,
  limits: { 'REST 503 ms': 2_000 },
  world: { redis: true },
  short: { times: 1, awaySeconds: 1 },
  long: { times: 5, awaySeconds: 10 },
  async inflict(world, { times, awaySeconds }) {
    let slowest = 0;
    for (let time = 0; time < times; time++) {
      await runFor(world, 300);
      const revoked = await revokedToken(world);
      await world.redis?.kill();
      const answer = await ask(world, path);
      expectHolds(answer.status === 503, `REST answers 503 without Redis, was ${answer.status}`);
      slowest = Math.max(slowest, answer.ms);
      await timeToAck(world);
      await watchMemory(world, awaySeconds);
      await world.redis?.restart();
      const back = async () => (await ask(world, path)).status;
      while ((await back()) === 503) await world.load.nextAck();
      expectHolds((await back()) === 401, 'an empty store accepts no token');
      const alive = await ask({ ...world, accountToken: revoked }, path);
      expectHolds(alive.status === 401, 'a revoked token stays revoked');
      await logInAgain(world);
    }
    return { times, 'REST 503 ms': slowest };
  },
};

/** Redis that does not answer. */
export const redisSlow: Fault = {
  name: 'redis-slow',
  promise,
  limits: { 'REST 503 ms': 2_000 },
  world: { redis: true },
  short: { times: 1, awaySeconds: 1 },
  long: { times: 3, awaySeconds: 20 },
  async inflict(world, { times, awaySeconds }) {
    let slowest = 0;
    for (let time = 0; time < times; time++) {
      await runFor(world, 300);
      world.redis?.pause();
      const answer = await ask(world, path);
      // Measurements do not need Redis.
      await timeToAck(world);
      await watchMemory(world, awaySeconds);
      world.redis?.resume();
      expectHolds(answer.status === 503, `REST answers 503, was ${answer.status}`);
      slowest = Math.max(slowest, answer.ms);
      while ((await ask(world, path)).status !== 200) await world.load.nextAck();
    }
    return { times, 'REST 503 ms': slowest };
  },
};

const password = 'a password of the bench';

const logIn = (world: World) =>
  call<{ accountAuthToken: string }>(world.service.url, 'POST', '/v2/accounts/login', {
    body: { email: world.accountEmail, password },
  });

async function logInAgain(world: World): Promise<void> {
  world.accountToken = (await logIn(world)).accountAuthToken;
}

/** The token of a session that its account has ended. */
async function revokedToken(world: World): Promise<string> {
  const { url } = world.service;
  const { accountAuthToken: token } = await logIn(world);
  const { sessions } = await call<{ sessions: { id: string; current: boolean }[] }>(
    url,
    'GET',
    '/v2/accounts/sessions',
    { token },
  );
  const own = sessions.find(({ current }) => current)?.id ?? '';
  await call(url, 'DELETE', `/v2/accounts/sessions/${own}`, { token });
  return token;
}
