import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { Aedes, type AedesOptions, type Client } from 'aedes';
import { generate, type Packet } from 'mqtt-packet';
import { describe, expect, test } from 'vitest';
import { DeviceAedes, readFailure } from '../../connector/mqtt/aedes.ts';
import { until } from '../connector/harness.ts';
import { openAedes as open } from './aedes-bench.ts';

const connect: Packet = {
  cmd: 'connect',
  protocolId: 'MQTT',
  clientId: 'x',
  keepalive: 0,
};
const publish = (messageId: number, qos: 1 | 2 = 1): Packet => ({
  cmd: 'publish',
  topic: 't',
  payload: 'x',
  qos,
  messageId,
  dup: false,
  retain: false,
});
const twice: Packet = {
  cmd: 'subscribe',
  messageId: 7,
  subscriptions: [
    { topic: 'a', qos: 0 },
    { topic: 'a', qos: 1 },
  ],
};

describe('the parser of a client', () => {
  test('reports each packet, first to listeners that put themselves in front', async () => {
    const broker = await open();
    const order: string[] = [];
    const { _parser } = broker.client as Client & { _parser: NodeJS.EventEmitter };
    _parser.prependListener('packet', ({ cmd }: Packet) => order.push(cmd));
    broker.engine.authorizeSubscribe = (_client, requested, done) => {
      order.push('authorize');
      done(null, requested);
    };
    broker.listen();
    broker.send(connect);
    await broker.expect('connack');
    broker.send(twice);
    await broker.expect('suback');
    expect(order).toEqual(['connect', 'subscribe', 'authorize']);
    await broker.close();
  });

  test('is why each repeated filter is answered: aedes by itself drops all but the last', async () => {
    for (const [make, granted] of [
      [Aedes, [1]],
      [DeviceAedes, [0, 1]],
    ] as const) {
      const broker = await open({}, make);
      broker.listen();
      broker.send(connect);
      await broker.expect('connack');
      broker.send(twice);
      expect(await broker.expect('suback')).toMatchObject([{ granted }]);
      await broker.close();
    }
  });
});

describe('the reason for a closed connection is recognised for', () => {
  const failureOf = async (options: AedesOptions, work: (device: Duplex) => void) => {
    const broker = await open(options);
    broker.listen();
    work(broker.device);
    await until(() => broker.errors.length > 0, 'an error');
    await broker.close();
    return readFailure(broker.errors[0] as Error);
  };

  test('a CONNECT that does not come', async () => {
    expect(await failureOf({ connectTimeout: 20 }, () => undefined)).toEqual({
      refusal: 'timeout',
      ending: 'malformed',
    });
  });

  test('an unsupported version of MQTT', async () => {
    const v6 = Buffer.from(generate(connect));
    v6[v6.indexOf('MQTT') + 4] = 6;
    expect(await failureOf({}, (device) => device.write(v6))).toMatchObject({
      ending: 'malformed',
    });
  });

  test('bytes that are not MQTT', async () => {
    expect(await failureOf({}, (device) => device.write(Buffer.from('GET / HTTP/1.1')))).toEqual({
      refusal: null,
      ending: 'malformed',
    });
  });

  test('a broken connection: an error with a code, and none of these', async () => {
    const broker = await open();
    broker.stream.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
    await until(() => broker.errors.length > 0, 'an error');
    expect(readFailure(broker.errors[0] as Error)).toEqual({ refusal: null, ending: null });
    await broker.close();
  });

  test('a device that does not read', async () => {
    const broker = await open({ drainTimeout: 20 });
    broker.send(connect);
    await once(broker.engine, 'clientReady');
    const message = { cmd: 'publish', topic: 't', payload: Buffer.alloc(100_000), qos: 0 } as const;
    for (let n = 0; n < 10; n += 1)
      broker.client.publish({ ...message, dup: false, retain: false }, () => undefined);
    await until(() => broker.errors.length > 0, 'an error');
    expect(readFailure(broker.errors[0] as Error)).toEqual({ refusal: null, ending: 'unread' });
    await broker.close();
  });
});

describe('a PUBLISH', () => {
  /** With its hook's callbacks, which the test calls. */
  async function held(asQos0: boolean) {
    const asked: (() => void)[] = [];
    const broker = await open({
      authorizePublish(_client, packet, done) {
        if (asQos0) packet.qos = 0;
        asked.push(() => done(null));
      },
    });
    broker.listen();
    broker.send(connect);
    await broker.expect('connack');
    return { ...broker, asked };
  }

  test('is acknowledged after authorizePublish, and those of one read begin at once', async () => {
    const broker = await held(false);
    broker.send(publish(1), publish(2), publish(3));
    await until(() => broker.asked.length === 3, 'all three');
    expect(broker.received.map(({ cmd }) => cmd)).toEqual(['connack']);
    for (const go of broker.asked) go();
    const acks = await broker.expect('puback', 3);
    expect(acks.map(({ messageId }) => messageId)).toEqual([1, 2, 3]);
    await broker.close();
  });

  test('that waits does not keep aedes from reading on, which is what the gate is for', async () => {
    const broker = await held(false);
    broker.send(publish(1));
    await until(() => broker.asked.length === 1, 'the first');
    broker.send(publish(2));
    await until(() => broker.asked.length === 2, 'the second');
    expect(broker.received.map(({ cmd }) => cmd)).toEqual(['connack']);
    for (const go of broker.asked) go();
    await broker.expect('puback', 2);
    await broker.close();
  });

  test('whose QoS the hook removes is not acknowledged', async () => {
    const broker = await held(true);
    broker.send(publish(1), { cmd: 'pingreq' });
    await until(() => broker.asked.length === 1, 'the hook');
    broker.asked[0]?.();
    await broker.expect('pingresp');
    expect(broker.received.map(({ cmd }) => cmd)).toEqual(['connack', 'pingresp']);
    await broker.close();
  });
});

test('everything it calls on a persistence exists in the one that keeps nothing', async () => {
  const broker = await open({}, DeviceAedes);
  const failed: unknown[] = [];
  (broker.engine as NodeJS.EventEmitter).on('error', (error) => failed.push(error));
  broker.listen();
  const will = { topic: 'w', payload: Buffer.from('gone'), qos: 1, retain: false };
  broker.send({ ...connect, clean: true, will } as Packet);
  await broker.expect('connack');
  broker.send(twice, publish(2, 2), { cmd: 'unsubscribe', messageId: 3, unsubscriptions: ['a'] });
  await broker.expect('suback');
  await broker.expect('unsuback');
  expect(await broker.expect('pubrec')).toMatchObject([{ messageId: 2 }]);
  broker.send({ cmd: 'pubrel', messageId: 2 });
  await broker.expect('pubcomp');
  broker.client.publish(
    { cmd: 'publish', topic: 'd', payload: 'x', qos: 1, dup: false, retain: false },
    () => undefined,
  );
  const [sent] = await broker.expect('publish');
  const acknowledged = once(broker.engine, 'ack');
  broker.send({ cmd: 'puback', messageId: sent?.messageId ?? 0 });
  const [packet, from] = (await acknowledged) as [{ messageId: number }, Client];
  expect([packet.messageId, from]).toEqual([sent?.messageId, broker.client]);
  const gone = once(broker.engine, 'clientDisconnect');
  broker.device.destroy();
  await gone;
  await broker.close();
  expect([...failed, ...broker.errors]).toEqual([]);
});
