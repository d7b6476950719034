import { once as onceOf, type EventEmitter } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { connect, type IClientOptions, type MqttClient } from 'mqtt';
import { generate, parser, type Packet } from 'mqtt-packet';
import { afterEach, describe, expect, test } from 'vitest';
import {
  createPublish,
  isUnanswered,
  refusalCodeOf,
  stopReconnecting,
  takeUnacknowledged,
  writePuback,
} from '../../connector/bridge/mqtt-js.ts';
import { until } from '../connector/harness.ts';

const version = { protocolVersion: 5 } as const;
/** The library's emitter has a type that Node's function does not accept. */
const once = (from: unknown, event: string) => onceOf(from as EventEmitter, event);
const ends: (() => void)[] = [];
afterEach(() => ends.splice(0).forEach((end) => end()));

/** A broker that sends what the test says. By itself it only accepts everybody. */
async function startBroker(isPolite = true) {
  const received: Packet[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    const packets = parser(version);
    packets.on('packet', (packet) => {
      received.push(packet);
      if (packet.cmd === 'connect' && isPolite)
        socket.write(generate({ cmd: 'connack', reasonCode: 0, sessionPresent: false }, version));
    });
    socket.on('data', (chunk) => packets.parse(chunk));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sockets,
    of: (cmd: Packet['cmd']) => received.filter((packet) => packet.cmd === cmd),
    send: (...sent: Packet[]) =>
      sockets.at(-1)?.write(Buffer.concat(sent.map((packet) => generate(packet, version)))),
  };
}

function dial(url: string, more: IClientOptions = {}): MqttClient {
  const client = connect(url, { ...version, clientId: 'c', reconnectPeriod: 0, ...more });
  client.on('error', () => undefined);
  ends.push(() => client.end(true));
  return client;
}

async function open(more: IClientOptions = {}) {
  const broker = await startBroker();
  const client = dial(broker.url, more);
  await once(client, 'connect');
  return { broker, client };
}

const publish = (messageId: number, qos: 0 | 1 = 1): Packet => ({
  cmd: 'publish',
  topic: 't',
  payload: 'x',
  qos,
  messageId,
  dup: false,
  retain: false,
});

describe('messages that are acknowledged later', () => {
  test('are delivered one after the other, and no PUBACK is written for them', async () => {
    const { broker, client } = await open();
    const taken: { messageId: number; acknowledge: () => void; next: () => void }[] = [];
    const errors: Error[] = [];
    client.on('error', (error) => errors.push(error));
    takeUnacknowledged(client, ({ messageId = 0 }, stream, next) =>
      taken.push({ messageId, next, acknowledge: () => writePuback(stream, messageId) }),
    );
    broker.send(publish(1), publish(0x1234), publish(0, 0), { cmd: 'pingresp' });
    await until(() => taken.length === 1, 'the first');
    for (let count = 1; count < 3; count += 1) {
      taken.at(-1)?.next();
      await until(() => taken.length === count + 1, 'the next');
    }
    taken.at(-1)?.next();
    client.sendPing();
    // Before this it has sent everything that it sends by itself.
    await until(() => broker.of('pingreq').length === 1, 'a ping');
    expect(broker.of('puback')).toEqual([]);
    taken[1]?.acknowledge();
    taken[0]?.acknowledge();
    await until(() => broker.of('puback').length === 2, 'both');
    expect(broker.of('puback')).toMatchObject([
      { messageId: 0x1234, reasonCode: 0 },
      { messageId: 1, reasonCode: 0 },
    ]);
    expect([client.connected, errors]).toEqual([true, []]);
  });

  test('are announced packet by packet before they are delivered', async () => {
    const { broker, client } = await open();
    const heard: string[] = [];
    client.on('packetreceive', ({ cmd }) => heard.push(cmd));
    takeUnacknowledged(client, () => heard.push('taken'));
    broker.send(publish(1), publish(2));
    await until(() => heard.includes('taken'), 'a message');
    expect(heard.slice(0, 2)).toEqual(['publish', 'taken']);
  });
});

describe('a connection that is lost', () => {
  test('is opened again, unless the client was ended', async () => {
    for (const isCalledOff of [false, true]) {
      const { broker, client } = await open({ reconnectPeriod: 60_000 });
      if (isCalledOff) stopReconnecting(client);
      const closed = once(client, 'close');
      broker.sockets[0]?.destroy();
      await closed;
      expect(client.reconnecting).toBe(!isCalledOff);
    }
  });

  test('closes when its stream is destroyed by hand', async () => {
    const { client } = await open();
    const closed = once(client, 'close');
    client.stream.destroy();
    await closed;
    expect(client.connected).toBe(false);
  });
});

describe('what the broker answers', () => {
  test.each([0, 16, 0x87])(
    'to each PUBLISH is reported by its reason code, %i',
    async (reasonCode) => {
      const { broker, client } = await open();
      const publishOnce = createPublish(client);
      const answers: [string, Error | null, number][] = [];
      for (const topic of ['first', 'second'])
        publishOnce(topic, Buffer.from('x'), (...answer) => answers.push([topic, ...answer]));
      await until(() => broker.of('publish').length === 2, 'both messages');
      const [first, second] = broker.of('publish').map(({ messageId = 0 }) => messageId);
      broker.send({ cmd: 'puback', messageId: second ?? 0, reasonCode });
      broker.send({ cmd: 'puback', messageId: first ?? 0, reasonCode: 0 });
      await until(() => answers.length === 2, 'both answers');
      const [ofSecond, ofFirst] = answers;
      expect(ofFirst).toEqual(['first', null, 0]);
      expect(ofSecond?.[0]).toBe('second');
      const [, error, told] = ofSecond ?? [];
      // From 0x80 on it is an error, MQTT 5 section 2.4.
      if (reasonCode < 0x80) expect([error, told]).toEqual([null, reasonCode]);
      else expect(refusalCodeOf(error as Error)).toBe(reasonCode);
    },
  );

  test('to a CONNECT that it refuses is an error with the reason code', async () => {
    const broker = await startBroker(false);
    const client = dial(broker.url);
    const failed = once(client, 'error');
    await until(() => broker.of('connect').length === 1, 'a CONNECT');
    broker.send({ cmd: 'connack', reasonCode: 0x87, sessionPresent: false });
    const [error] = (await failed) as [Error];
    expect([refusalCodeOf(error), isUnanswered(error)]).toEqual([0x87, false]);
  });

  test('to a CONNECT: nothing', async () => {
    const broker = await startBroker(false);
    const [error] = (await once(dial(broker.url, { connectTimeout: 50 }), 'error')) as [Error];
    expect([refusalCodeOf(error), isUnanswered(error)]).toEqual([null, true]);
  });

  test('to a connection attempt: nobody is there', async () => {
    const [error] = (await once(dial('mqtt://127.0.0.1:1'), 'error')) as [Error];
    expect([refusalCodeOf(error), isUnanswered(error)]).toEqual([null, false]);
  });
});
