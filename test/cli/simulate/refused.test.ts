import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectDevices, type Fleet } from '../../../src/cli/simulate/fleet.ts';
import { createTally } from '../../../src/cli/simulate/devices.ts';

const connack = Buffer.from([0x20, 2, 0, 0]);
const connectType = 1;
const subscribeType = 8;

/** Accepts the first device and never answers its SUBSCRIBE; then closes the connection of the second. */
const sockets: Socket[] = [];
let isSubscribing = false;
const { promise: lastEnds, resolve: hasEnded } = Promise.withResolvers<void>();
const server = createServer((socket) => {
  const number = sockets.push(socket);
  socket.on('error', () => undefined);
  if (number > 2) return void socket.destroy();
  if (number === 1) socket.once('close', hasEnded);
  if (isSubscribing) return void socket.destroy();
  socket.on('data', (packet) => {
    const type = Number(packet[0]) >> 4;
    if (number === 1 && type === connectType) socket.write(connack);
    if (type === subscribeType) isSubscribing = true;
    if (isSubscribing) sockets[1]?.destroy();
  });
});
let port: number;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

it('if one device is refused, no other device is left behind to reconnect', async () => {
  const fleet = {
    screen: { say: () => undefined, bar: () => undefined },
    signal: new AbortController().signal,
    insecure: false,
    protocol: 'mqtt',
    tally: createTally(),
  } as unknown as Fleet;
  const registration = { protocol: 'mqtt', host: '127.0.0.1', port } as const;
  const registrations = ['a', 'b'].map((deviceAuthUuid) => ({
    ...registration,
    deviceAuthUuid,
    deviceAuthToken: 'token',
  }));
  await expect(connectDevices(fleet, registrations)).rejects.toThrow('could not connect');
  await lastEnds;
  expect(sockets).toHaveLength(2);
});
