import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { generate, parser } from 'mqtt-packet';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startStandBy } from '../../../connector/bridge/standby.ts';
import { prepareBridge } from './harness.ts';

const log = { info() {}, warn() {}, error() {} };
const server = createServer();
/** In the order of their CONNECT packets. */
const connections: { clientId: string; socket: Socket }[] = [];
const of = (name: string) => connections.filter(({ clientId }) => clientId === name);

/** A broker that never answers the client `unanswered`, so that this one is never connected. */
function serve(socket: Socket): void {
  const packets = parser({ protocolVersion: 5 });
  const send = (packet: Parameters<typeof generate>[0]) =>
    socket.write(generate(packet, { protocolVersion: 5 }));
  packets.on('packet', (packet) => {
    if (packet.cmd === 'connect') {
      connections.push({ clientId: packet.clientId, socket });
      if (packet.clientId !== 'unanswered')
        send({ cmd: 'connack', reasonCode: 0, sessionPresent: false });
    }
    if (packet.cmd === 'subscribe')
      send({ cmd: 'suback', messageId: packet.messageId ?? 0, granted: [1] });
  });
  socket.on('data', (chunk) => packets.parse(chunk)).on('error', () => undefined);
}

beforeAll(async () => {
  server.on('connection', serve).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  for (const { socket } of connections) socket.destroy();
  server.close();
  await once(server, 'close');
});

function bridgeNamed(clientId: string) {
  const { port } = server.address() as AddressInfo;
  return prepareBridge({ url: `mqtt://127.0.0.1:${port}`, clientId });
}

/** Competes for a lease that the test grants and takes away. */
async function standBy(clientId: string) {
  let take = () => {};
  let give = () => {};
  const { start, status } = bridgeNamed(clientId);
  const bridge = await startStandBy({
    broker: { url: 'mqtt://127.0.0.1' },
    log,
    status,
    startBridge: start,
    startLease: async ({ onHeld, onLost }) => {
      [give, take] = [onHeld, onLost];
      const nothing = () => undefined;
      const release = (finish: () => Promise<void>) => finish();
      return { rest: nothing, compete: nothing, isThere: () => true, release };
    },
  });
  return { give: () => give(), take: () => take(), bridge };
}

test('a process that loses the lease leaves the broker at once, and does not return by itself', async () => {
  const other = bridgeNamed('other').start();
  const names = ['answered', 'unanswered'];
  const all = await Promise.all(names.map(standBy));
  expect(names.flatMap(of)).toEqual([]);
  for (const { give } of all) give();
  for (const name of [...names, 'other']) await expect.poll(() => of(name)).toHaveLength(1);
  await other.ready;

  // A reset also counts as gone; `once` would take it for a failure.
  const closed = names.map(
    (name) => new Promise((resolve) => of(name)[0]?.socket.once('close', resolve)),
  );
  for (const { take } of all) take();
  await Promise.all(closed);
  // A connection that is merely lost is back by now.
  of('other')[0]?.socket.destroy();
  await expect.poll(() => of('other'), { timeout: 60_000 }).toHaveLength(2);
  expect(names.flatMap(of)).toHaveLength(2);

  for (const { give } of all) give();
  for (const name of names) await expect.poll(() => of(name)).toHaveLength(2);
  for (const { bridge } of all) await bridge.close({ drainMs: 0 });
  await other.close({ drainMs: 0 });
});
