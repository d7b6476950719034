import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import type { DeviceIdentity, Downlink } from '../../../src/contract/uplink.ts';
import { startHttpWorld, type HttpWorld } from './harness.ts';

let world: HttpWorld;
afterEach(() => world.close());

/** More than the buffers of a connection hold. */
const large = 'x'.repeat(6_291_456);
/** The account of the honest device; the others' devices have large profiles. */
const honest = 7;
const subscribed = async ({ accountId }: DeviceIdentity): Promise<Downlink[]> => [
  { topic: 'profile', payload: accountId === honest ? 'small' : large, pId: 'p' },
];

/** Polls, and reads only the beginning of the answer. */
async function pollSlowly(as: HttpWorld['device']) {
  const socket = await world.dial();
  const authorization = world.basic(as);
  socket.write(
    `GET /devices/${as.uuid}/down?wait=0 HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\n\r\n`,
  );
  await once(socket, 'data');
  socket.pause();
}

const day = 86_400_000;
test.each([
  ['soon while others wait', { downlinkTimeoutMs: day, wantedDownlinkTimeoutMs: 50 }],
  ['after a while anyway', { downlinkTimeoutMs: 2_000, wantedDownlinkTimeoutMs: day }],
])('a client that takes nothing of its answer makes way: %s', async (_when, times) => {
  world = await startHttpWorld({ ports: { subscribed }, tuning: times });
  // Each of four accounts uses its quarter of the room.
  const slow = Array.from({ length: 32 }, (_, n) => world.store.addDevice(100 + n, 2 + (n % 4)));
  await Promise.all(slow.map(pollSlowly));
  const as = world.store.addDevice(honest, honest);
  const headers = { authorization: world.basic(as) };
  const answer = await fetch(`${world.url}/devices/${as.uuid}/down?wait=0`, { headers });
  expect(await answer.json()).toMatchObject({ messages: [{ payload: 'small' }] });
});
