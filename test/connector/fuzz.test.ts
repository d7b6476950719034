import fc from 'fast-check';
import { generate } from 'mqtt-packet';
import { expect, test } from 'vitest';
import { startWorld } from './harness.ts';
import { connectPacket, dial, enter, publishPacket } from './raw.ts';

/** For longer runs and other seeds, by hand: FUZZ_SECONDS=600 FUZZ_SEED=1. */
const seconds = Number(process.env['FUZZ_SECONDS'] ?? 5);
const seed = Number(process.env['FUZZ_SEED'] ?? 20_261_121);

const byte = fc.integer({ min: 0, max: 255 });
const bytes = (maxLength: number) => fc.array(byte, { maxLength }).map((list) => Buffer.from(list));

/** A packet of any type with the right length, because most faults of parsers lie behind that check. */
const framed = fc
  .tuple(byte, bytes(200))
  .map(([type, body]) => Buffer.concat([Buffer.from([type, ...lengthOf(body.length)]), body]));
const lengthOf = (length: number) =>
  length < 128 ? [length] : [(length % 128) | 128, Math.floor(length / 128)];

type Attack = { isConnected: boolean; chunks: Buffer[]; isSplit: boolean };

test(
  'malformed bytes end at most their own connection',
  { timeout: (seconds + 30) * 1_000 },
  async () => {
    const world = await startWorld({
      limits: {
        connectsPerSecond: 1_000_000,
        messagesPerSecond: 1_000_000,
        messagesBurst: 1_000_000,
        connectTimeoutMs: 10_000,
        maxConnectionsPerDevice: 1_000,
      },
    });
    const { uuid, token } = world.store.addDevice(2);
    const honest = await enter(world, { username: uuid, password: Buffer.from(token) });
    const down = `devices/${world.device.uuid}/down/#`;

    /** Well-formed packets with some bytes changed. */
    const wellFormed = fc.constantFrom(
      generate(connectPacket(world)),
      generate(
        publishPacket(`devices/${world.device.uuid}/up/state`, '{}', { qos: 2, messageId: 1 }),
      ),
      generate({ cmd: 'subscribe', messageId: 1, subscriptions: [{ topic: down, qos: 2 }] }),
      generate({ cmd: 'unsubscribe', messageId: 1, unsubscriptions: [down] }),
      generate({ cmd: 'pubrel', messageId: 1 }),
      generate({ cmd: 'pingreq' }),
    );
    const mutated = fc
      .tuple(wellFormed, fc.array(fc.tuple(fc.nat(), byte), { maxLength: 3 }))
      .map(([packet, changes]) => {
        const copy = Buffer.from(packet);
        for (const [at, value] of changes) copy[at % copy.length] = value;
        return copy;
      });
    const attackOf: fc.Arbitrary<Attack> = fc.record({
      isConnected: fc.boolean(),
      chunks: fc.array(fc.oneof(bytes(300), framed, mutated, mutated), {
        minLength: 1,
        maxLength: 8,
      }),
      isSplit: fc.boolean(),
    });

    let acks = 0;
    async function attack({ isConnected, chunks, isSplit }: Attack): Promise<void> {
      const raw = isConnected ? await enter(world, { clientId: '' }) : await dial(world);
      for (const chunk of isSplit ? chunks : [Buffer.concat(chunks)]) {
        raw.socket.write(chunk);
        if (isSplit) await new Promise((resolve) => setImmediate(resolve));
      }
      raw.socket.end();
    }
    const property = fc.asyncProperty(fc.array(attackOf, { maxLength: 20 }), async (attacks) => {
      await Promise.all(attacks.map(attack));
      const topic = `devices/${uuid}/up/state`;
      const messageId = (acks % 60_000) + 1;
      honest.send(publishPacket(topic, { puId: 1, stId: 1 }, { qos: 1, messageId }));
      acks += 1;
      await honest.expect('puback', acks);
      expect(honest.of('puback').at(-1)?.messageId).toBe(messageId);
    });
    const faults: unknown[] = [];
    const onFault = (error: unknown) => faults.push(error);
    process.on('uncaughtException', onFault);
    const limit = { interruptAfterTimeLimit: seconds * 1_000, markInterruptAsFailure: false };
    await fc.assert(property, { numRuns: 1_000_000, seed, ...limit });
    process.off('uncaughtException', onFault);
    expect(faults).toEqual([]);
    expect(world.logged).toEqual([]);
    expect(acks).toBeGreaterThan(0);
    await world.close();
  },
);
