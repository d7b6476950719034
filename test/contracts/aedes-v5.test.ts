import { Aedes, type AedesOptions } from 'aedes';
import type { Packet } from 'mqtt-packet';
import { describe, expect, test } from 'vitest';
import { answerConnect, DeviceAedes } from '../../connector/mqtt/aedes.ts';
import { connackRefusal } from '../../connector/mqtt/v5.ts';
import { until } from '../connector/harness.ts';
import { openAedes } from './aedes-bench.ts';

describe('MQTT 5', () => {
  const connect5: Packet = {
    cmd: 'connect',
    protocolId: 'MQTT',
    protocolVersion: 5,
    clean: true,
    clientId: 'x',
    keepalive: 0,
  };
  const open5 = async (make: typeof Aedes | typeof DeviceAedes, options: AedesOptions = {}) => {
    const broker = await openAedes(options, make, 5);
    broker.listen();
    return broker;
  };

  test('a CONNACK has at most four limits, and is replaced once', async () => {
    const plain = await open5(Aedes, { receiveMaximum: 7, maximumPacketSize: 99 });
    plain.send(connect5);
    expect((await plain.expect('connack'))[0]).toMatchObject({
      properties: { sharedSubscriptionAvailable: false, receiveMaximum: 7, maximumPacketSize: 99 },
    });
    await plain.close();
    const broker = await open5(DeviceAedes, {
      authenticate(client, _name, _password, done) {
        answerConnect(client, connackRefusal(0x9f));
        done(null, true);
      },
    });
    broker.send(connect5);
    expect(await broker.expect('connack')).toMatchObject([{ reasonCode: 0x9f }]);
    broker.send({ cmd: 'pingreq' });
    await broker.expect('pingresp');
    expect(Object.hasOwn(broker.stream, 'write')).toBe(false);
    await broker.close();
  });

  test('a foreign topic leaves the connection open, which is why no PUBLISH gets there', async () => {
    const broker = await open5(Aedes, {
      authorizePublish: (_client, _packet, done) => done(new Error('no')),
    });
    broker.send(connect5);
    await broker.expect('connack');
    broker.send({
      cmd: 'publish',
      topic: 't',
      payload: 'x',
      qos: 1,
      messageId: 1,
      dup: false,
      retain: false,
    });
    broker.send({ cmd: 'pingreq' });
    await broker.expect('pingresp');
    expect(broker.received.map(({ cmd }) => cmd)).toEqual(['connack', 'puback', 'pingresp']);
    await broker.close();
  });

  test('its parser accepts invalid properties, which never reach it here', async () => {
    const broker = await open5(Aedes);
    broker.send(connect5);
    await broker.expect('connack');
    // The property length reaches beyond the packet, into the one that follows.
    broker.device.write(Buffer.from([0x30, 4, 0, 1, 0x74, 3, 0xc0, 0]));
    await until(() => broker.errors.length + broker.received.length > 1, 'an answer');
    expect(broker.received.map(({ cmd }) => cmd)).not.toContain('disconnect');
    await broker.close();
  });

  test('a filter named __proto__ beside another one is answered; aedes by itself throws', async () => {
    const broker = await open5(DeviceAedes);
    broker.send(connect5);
    await broker.expect('connack');
    broker.send({
      cmd: 'subscribe',
      messageId: 7,
      subscriptions: [
        { topic: '__proto__', qos: 0 },
        { topic: 'a', qos: 1 },
      ],
    });
    expect(await broker.expect('suback')).toMatchObject([{ granted: [0, 1] }]);
    broker.send({ cmd: 'unsubscribe', messageId: 8, unsubscriptions: ['constructor', 'a'] });
    expect(await broker.expect('unsuback')).toMatchObject([{ granted: [0x11, 0] }]);
    await broker.close();
  });
});
