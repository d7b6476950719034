import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { connect, type MqttClient } from 'mqtt';
import { generate, parser } from 'mqtt-packet';
import { expect, test } from 'vitest';
import { createBrokerPublisher } from '../../../connector/bridge/client.ts';

const version = { protocolVersion: 5 } as const;

/** A broker that answers each PUBLISH with this reason code. */
async function startBroker(reasonCode: number) {
  const server = createServer((socket) => {
    const packets = parser(version);
    packets.on('packet', ({ cmd, messageId = 0 }) => {
      if (cmd === 'connect')
        socket.write(generate({ cmd: 'connack', reasonCode: 0, sessionPresent: false }, version));
      if (cmd === 'publish')
        socket.write(generate({ cmd: 'puback', messageId, reasonCode }, version));
    });
    socket.on('error', () => undefined).on('data', (chunk) => packets.parse(chunk));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const client: MqttClient = connect({ ...version, host: '127.0.0.1', port, reconnectPeriod: 0 });
  await new Promise<void>((resolve) => client.once('connect', () => resolve()));
  return { client, close: () => (client.end(true), server.close()) };
}

test.each([
  { reasonCode: 0, told: 'published', counted: ['out'] },
  { reasonCode: 16, told: 'nobody listens', counted: ['out'] },
  { reasonCode: 0x87, told: 'Publish error: Not authorized', counted: ['not-published'] },
])('a broker that answers $reasonCode: $told', async ({ reasonCode, told, counted }) => {
  const { client, close } = await startBroker(reasonCode);
  const counts: string[] = [];
  const publish = createBrokerPublisher(client, {
    messageOut: () => void counts.push('out'),
    refused: (what) => void counts.push(what),
  });
  const outcome = publish('devices/x/down/text', Buffer.from('{}')).then(
    () => 'published',
    (error: Error) => error.message,
  );
  expect(await outcome).toBe(told);
  expect(counts).toEqual(counted);
  close();
});
