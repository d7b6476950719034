import { generate } from 'mqtt-packet';
import { afterEach, expect, test } from 'vitest';
import { manualClock, startWorld, until, type World } from './harness.ts';
import { enter, moments } from './raw.ts';

let world: World;
afterEach(() => world.close());

test.each(['in one piece', 'apart from its first byte'])(
  'a long list of filters counts as many packets, its length %s',
  async (how) => {
    const clock = manualClock();
    const limits = { messagesPerSecond: 100, messagesBurst: 20, measurementsPerSecond: 1_000 };
    world = await startWorld({ now: clock.now, limits });
    const raw = await enter(world);
    const subscriptions = Array.from({ length: 16 }, (_, n) => ({
      topic: `devices/${world.device.uuid}/down/${n}`,
      qos: 1 as const,
    }));
    const bytes = generate(
      { cmd: 'subscribe', messageId: 1, subscriptions },
      { protocolVersion: raw.version },
    );
    if (how !== 'in one piece') {
      raw.socket.write(bytes.subarray(0, 1));
      await until(() => world.connector.snapshot().midwayBytes > 0, 'the first byte');
    }
    raw.socket.write(bytes.subarray(how === 'in one piece' ? 0 : 1));
    await raw.expect('suback');
    raw.send({ cmd: 'pingreq' });
    await moments(world);
    expect(raw.of('pingresp')).toEqual([]);
    clock.monotonicMs += 1_000;
    await raw.expect('pingresp');
  },
);

test.each(['subscribe', 'unsubscribe'] as const)(
  'a %s longer than all allowed filters closes the connection',
  async (cmd) => {
    world = await startWorld();
    const raw = await enter(world);
    const ofLength = (length: number) => {
      const topics = Array.from({ length: 17 }, (_, n) => `${n}`.padEnd(length, 'x'));
      if (cmd === 'unsubscribe') return { cmd, messageId: 1, unsubscriptions: topics };
      const subscriptions = topics.map((topic) => ({ topic, qos: 1 as const }));
      return { cmd, messageId: 1, subscriptions };
    };
    raw.send(ofLength(240));
    await raw.expect(cmd === 'subscribe' ? 'suback' : 'unsuback');
    raw.send(ofLength(256));
    await raw.ended();
    await until(() => world.counted.includes('disconnected malformed'));
  },
);
