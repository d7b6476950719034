import { connect as connectSocket, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startWorld, until, type World, type WorldOptions } from './harness.ts';
import { connectPacket, dial, enter, publishPacket, type RawClient } from './raw.ts';

let world: World;
let up: string;
let honest: RawClient;
let lastId = 0;
const megabyte = 1_048_576;

const start = async (options?: WorldOptions) => {
  world = await startWorld(options);
  up = `devices/${world.device.uuid}/up`;
  const { uuid, token } = world.store.addDevice(500);
  honest = await enter(world, { username: uuid, password: Buffer.from(token), clientId: 'honest' });
};
beforeEach(() => start());
afterEach(async () => {
  await expectUnharmed();
  await world.close();
});

/** Whatever was done, the process lives and another device gets its acknowledgement. */
async function expectUnharmed(): Promise<void> {
  await acknowledgeHonest();
  expect(world.store.errors).toEqual([]);
  expect(world.logged).toEqual([]);
}

async function acknowledgeHonest(): Promise<void> {
  const { uuid } = world.store.addDevice(500);
  const messageId = (lastId = (lastId % 60_000) + 1);
  const before = honest.of('puback').length;
  const topic = `devices/${uuid}/up/state`;
  honest.send(publishPacket(topic, { puId: 1, stId: 1 }, { qos: 1, messageId }));
  const acks = await honest.expect('puback', before + 1);
  expect(acks.at(-1)?.messageId).toBe(messageId);
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** The bytes that this process holds, including the load client. */
function held(): number {
  collectGarbage();
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return heapUsed + external + arrayBuffers;
}

/** Sends zeros until the other side closes. */
async function pour(socket: Socket, megabytes: number): Promise<void> {
  const block = Buffer.alloc(megabyte);
  for (let sent = 0; sent < megabytes && !socket.destroyed; sent++) {
    if (socket.write(block)) continue;
    await new Promise<void>((resolve) => {
      const done = () => {
        socket.off('drain', done).off('close', done);
        resolve();
      };
      socket.on('drain', done).on('close', done);
    });
  }
}

describe('a stranger', () => {
  test('who announces a CONNECT of 256 MB is disconnected at its first bytes', async () => {
    const before = held();
    const raw = await dial(world);
    raw.socket.write(Buffer.from([0x10, 0xff, 0xff, 0xff, 0x7f]));
    await pour(raw.socket, 256);
    await raw.ended();
    expect(held() - before).toBeLessThan(32 * megabyte);
    expect(world.store.checks).toBe(1);
  });

  test('who sends 256 MB before any CONNECT is disconnected at its first byte', async () => {
    const before = held();
    const raw = await dial(world);
    await pour(raw.socket, 256);
    await raw.ended();
    expect(held() - before).toBeLessThan(32 * megabyte);
  });

  test('who sends 256 MB after a CONNECT that is being checked is not read', async () => {
    const checked = Promise.withResolvers<void>();
    world.store.beforeAuthenticated = () => checked.promise;
    const before = held();
    const raw = await dial(world);
    raw.send(connectPacket(world, { password: Buffer.from('wrong') }));
    await until(() => world.store.checks === 2);
    const poured = pour(raw.socket, 256);
    await until(() => raw.socket.writableNeedDrain);
    expect(held() - before).toBeLessThan(32 * megabyte);
    world.store.beforeAuthenticated = async () => {};
    checked.resolve();
    await raw.ended();
    await poured;
  });

  test('who opens 5,000 connections and says nothing disturbs nobody', async () => {
    await world.close();
    const perAddress = { connectingPerAddress: 10_000, waitingPerAddress: 10_000 };
    const limits = { connectsPerSecond: 100_000, connectTimeoutMs: 1_500, ...perAddress };
    await start({ limits });
    const sockets: Socket[] = [];
    for (let n = 0; n < 5_000; n++) {
      const socket = connectSocket({ port: world.port, host: '127.0.0.1' });
      socket.on('error', () => {});
      sockets.push(socket);
      if (n % 500 === 499) await acknowledgeHonest();
    }
    await until(() => sockets.every(({ pending, destroyed }) => !pending || destroyed));
    await acknowledgeHonest();
    await until(() => world.connector.snapshot().connections === 1);
    for (const socket of sockets) socket.destroy();
  });
});

describe('a device', () => {
  test('that uses a topic of a thousand levels is disconnected', async () => {
    const raw = await enter(world);
    raw.send(publishPacket(`${up}${'/x'.repeat(1_000)}`, '1', { qos: 1, messageId: 1 }));
    await raw.ended();
    const other = await enter(world);
    const topic = `devices/${world.device.uuid}/down${'/x'.repeat(1_000)}`;
    other.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic, qos: 1 }] });
    await other.ended();
    const third = await enter(world);
    third.send({ cmd: 'unsubscribe', messageId: 1, unsubscriptions: [topic] });
    await third.ended();
  });

  test('that uses filters and topics named like members of every object gets nowhere', async () => {
    const raw = await enter(world, { clientId: '__proto__' });
    const names = ['__proto__', 'constructor', 'hasOwnProperty'];
    const own = names.map((name) => `devices/${world.device.uuid}/down/${name}`);
    const subscriptions = [...names, ...own].map((topic) => ({ topic, qos: 1 as const }));
    raw.send({ cmd: 'subscribe', messageId: 1, subscriptions });
    expect((await raw.expect('suback'))[0]?.granted).toEqual([128, 128, 128, 1, 1, 1]);
    raw.send({ cmd: 'unsubscribe', messageId: 2, unsubscriptions: [...names, ...own] });
    await raw.expect('unsuback');
    for (const [n, name] of names.entries()) {
      raw.send(publishPacket(`${up}/${name}`, `{"${name}":1}`, { qos: 1, messageId: n + 1 }));
      await raw.expect('puback', n + 1);
    }
    const reasons = world.store.stored.flatMap(({ uplink }) => uplink.rejections);
    expect(reasons.map(({ reason }) => reason)).toEqual(Array(3).fill('unknown-topic'));
    expect(({} as Record<string, unknown>)['qos']).toBeUndefined();
  });

  test('that sends 60,000 filters in one SUBSCRIBE is disconnected for its size, with 70 it gets 16', async () => {
    const filter = (n: number) => ({ topic: `x${n.toString(36)}`, qos: 0 as const });
    const raw = await enter(world);
    const subscriptions = Array.from({ length: 60_000 }, (_, n) => filter(n));
    raw.send({ cmd: 'subscribe', messageId: 1, subscriptions });
    await raw.ended();
    const other = await enter(world);
    const down = `devices/${world.device.uuid}/down/`;
    const some = Array.from({ length: 70 }, (_, n) => ({ topic: down + n, qos: 0 as const }));
    other.send({ cmd: 'subscribe', messageId: 1, subscriptions: some });
    const granted = (await other.expect('suback'))[0]?.granted ?? [];
    expect(granted).toHaveLength(70);
    expect(granted.filter((qos) => qos !== 128)).toHaveLength(16);
  });

  test('that leaves 65,000 QoS 2 messages unfinished is disconnected', async () => {
    await world.close();
    await start({ limits: { messagesPerSecond: 1_000_000, messagesBurst: 1_000_000 } });
    const before = held();
    const raw = await enter(world);
    for (let n = 1; n <= 65_000 && !raw.isClosed; n++) {
      raw.send(publishPacket(`${up}/state`, { puId: 1, stId: n }, { qos: 2, messageId: n }));
      if (n % 200 === 0) await raw.expect('pubrec', Math.min(n, 1_000));
    }
    await raw.ended();
    expect(world.store.stored.length).toBeLessThanOrEqual(1_100);
    expect(world.connector.snapshot().unackedBytes).toBe(0);
    expect(held() - before).toBeLessThan(32 * megabyte);
  });

  test('that subscribes and never reads is disconnected, and its queue is bounded', async () => {
    await world.close();
    await start({ tuning: { drainTimeoutMs: 200 } });
    const raw = await enter(world);
    const topic = `devices/${world.device.uuid}/down/#`;
    raw.send({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic, qos: 0 }] });
    await raw.expect('suback');
    raw.socket.pause();
    const before = held();
    const payload = { text: 'x'.repeat(200_000) };
    await until(() => {
      const { uuid } = world.device;
      world.store.bus.publish('down', { uuid, message: { topic: 'display', payload } });
      return world.counted.includes('disconnected unread');
    });
    expect(held() - before).toBeLessThan(64 * megabyte);
  });

  test('that nests its JSON thirty thousand deep gets a rejection', async () => {
    const raw = await enter(world);
    for (const [n, name] of [
      'measurements',
      'events',
      'state',
      'profile',
      'configuration',
    ].entries()) {
      const deep = '['.repeat(30_000) + ']'.repeat(30_000);
      raw.send(publishPacket(`${up}/${name}`, deep, { qos: 1, messageId: n + 1 }));
      await raw.expect('puback', n + 1);
    }
    const rejections = world.store.stored.map(({ uplink }) => uplink.rejections[0]?.reason);
    expect(rejections).toEqual(Array(5).fill('invalid-payload'));
  });

  test('that sends two CONNECTs on one connection is disconnected [MQTT-3.1.0-2]', async () => {
    const raw = await enter(world);
    raw.send(connectPacket(world));
    await raw.ended();
  });

  test('that disconnects in the middle of everything leaves nothing behind', async () => {
    world.store.isHolding = true;
    for (let n = 0; n < 50; n++) {
      const raw = await dial(world);
      raw.send(connectPacket(world, { clientId: `c${n % 3}` }));
      for (let m = 1; m <= n; m++)
        raw.send(publishPacket(`${up}/state`, { puId: m, stId: n }, { qos: 1, messageId: m }));
      if (n % 2) await raw.expect('connack');
      raw.socket.resetAndDestroy();
    }
    await until(() => world.connector.snapshot().connections === 1);
    expect(world.store.held).toEqual([]);
    expect(world.connector.snapshot()).toMatchObject({ devices: 1, unackedBytes: 0 });
    world.store.isHolding = false;
  });
});
