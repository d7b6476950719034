import fc from 'fast-check';
import { generate, parser } from 'mqtt-packet';
import { describe, expect, it } from 'vitest';
import { readPublish, readWholePublish } from '../../connector/mqtt/frames.ts';
import { frameAt } from '../../connector/mqtt/v5.ts';
import { upTopicNames } from '../../src/contract/uplink.ts';

const prefix = 'devices/5b1c0a9e-51f0-4b3e-8f27-0f3f6f5d7c11/up/';

const plain = fc.record({
  topic: fc.constantFrom('measurements', 'state', 'x').map((name) => prefix + name),
  qos: fc.constantFrom<0 | 1>(0, 1),
  messageId: fc.integer({ min: 1, max: 65_535 }),
  payload: fc.uint8Array({ maxLength: 20_000 }).map((bytes) => Buffer.from(bytes)),
  dup: fc.boolean(),
  retain: fc.boolean(),
});

/** What the general parser makes of the bytes: packets, and whether it gave up. */
function parseAll(bytes: Buffer) {
  const packets: unknown[] = [];
  const errors: Error[] = [];
  const general = parser({ protocolVersion: 4 });
  general.on('packet', (packet) => packets.push(packet));
  general.on('error', (error) => errors.push(error));
  general.parse(bytes);
  return { packets, errors };
}

describe('a PUBLISH', () => {
  it('is read as it was written, wherever it begins', () => {
    fc.assert(
      fc.property(plain, fc.uint8Array({ maxLength: 9 }), (sent, before) => {
        const { qos, dup } = sent;
        const packet = generate({ cmd: 'publish', ...sent, dup: dup && qos > 0 });
        const after = Buffer.from([0xc0, 0]);
        const read = readPublish(
          Buffer.concat([before, packet, after]),
          before.length,
          prefix,
          false,
        );
        expect(read).toEqual({
          topic: sent.topic,
          qos,
          messageId: qos === 0 ? 0 : sent.messageId,
          payload: sent.payload,
          end: before.length + packet.length,
        });
      }),
    );
  });

  it('is left to the general parser while its end is missing', () => {
    const packet = generate({
      cmd: 'publish',
      topic: `${prefix}measurements`,
      qos: 1,
      messageId: 7,
      payload: Buffer.alloc(300),
      dup: false,
      retain: false,
    });
    for (let length = 1; length < packet.length; length++)
      expect(readPublish(packet.subarray(0, length), 0, prefix, false)).toBeNull();
    expect(readPublish(packet, 0, prefix, false)).not.toBeNull();
  });

  it('is never read if the general parser reads none, or another one', () => {
    const scrambled = fc.tuple(plain, fc.nat(60), fc.nat(255)).map(([sent, at, byte]) => {
      const packet = generate({ cmd: 'publish', ...sent, dup: sent.dup && sent.qos > 0 });
      packet[at % packet.length] = byte;
      return packet;
    });
    fc.assert(
      fc.property(scrambled, (packet) => {
        const read = readPublish(packet, 0, prefix, false);
        if (read === null) return;
        const { packets, errors } = parseAll(packet.subarray(0, read.end));
        const { topic, qos, payload } = read;
        expect(errors).toEqual([]);
        expect(packets).toMatchObject([{ cmd: 'publish', topic, qos, payload }]);
        if (qos === 1) expect(packets).toMatchObject([{ messageId: read.messageId }]);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['QoS 2', [0x34]],
    ['QoS 3', [0x36]],
    ['DUP at QoS 0', [0x38]],
    ['another packet', [0x40]],
  ])('%s is left to the general parser', (_, [first]) => {
    const packet = generate({
      cmd: 'publish',
      topic: `${prefix}state`,
      qos: 1,
      messageId: 7,
      payload: Buffer.from('{}'),
      dup: false,
      retain: false,
    });
    packet[0] = first as number;
    expect(readPublish(packet, 0, prefix, false)).toBeNull();
  });
});

describe('a PUBLISH of MQTT 5', () => {
  const write = (sent: { qos: 0 | 1; dup: boolean; retain: boolean }) =>
    generate({ cmd: 'publish', ...sent, dup: sent.dup && sent.qos > 0 } as never, {
      protocolVersion: 5,
    });

  it('is read as it was written if it has no properties and no RETAIN', () => {
    fc.assert(
      fc.property(plain, fc.uint8Array({ maxLength: 9 }), (sent, before) => {
        const { topic, qos, retain, payload } = sent;
        const packet = write(sent);
        const read = readPublish(Buffer.concat([before, packet]), before.length, prefix, true);
        const messageId = qos === 0 ? 0 : sent.messageId;
        const end = before.length + packet.length;
        expect(read).toEqual(retain ? null : { topic, qos, messageId, payload, end });
      }),
    );
  });

  it('is left to the reader of properties if it has some, or their length is missing', () => {
    const sent = {
      topic: `${prefix}state`,
      qos: 1,
      messageId: 7,
      dup: false,
      retain: false,
    } as const;
    const whole = write({ ...sent, payload: Buffer.from('{}') } as never);
    expect(readPublish(whole, 0, prefix, true)).not.toBeNull();
    for (let length = 1; length < whole.length; length++)
      expect(readPublish(whole.subarray(0, length), 0, prefix, true)).toBeNull();
    const properties = { messageExpiryInterval: 5 };
    const withSome = write({ ...sent, payload: Buffer.from('{}'), properties } as never);
    expect(readPublish(withSome, 0, prefix, true)).toBeNull();
    // A packet that ends after its identifier has no property length.
    const cut = generate({ cmd: 'publish', ...sent, payload: Buffer.alloc(0) });
    expect(readPublish(cut, 0, prefix, false)).not.toBeNull();
    expect(readPublish(cut, 0, prefix, true)).toBeNull();
  });

  it('is never read if the reader of properties refuses it, or reads another one', () => {
    const scrambled = fc.tuple(plain, fc.nat(70), fc.nat(255)).map(([sent, at, byte]) => {
      const packet = write(sent);
      packet[at % packet.length] = byte;
      return packet;
    });
    fc.assert(
      fc.property(scrambled, (packet) => {
        const read = readPublish(packet, 0, prefix, true);
        // `acceptLeading` takes only these.
        if (read === null || !upTopicNames.has(read.topic.slice(prefix.length))) return;
        const { topic, qos, messageId, payload } = read;
        const general = readWholePublish(packet, frameAt(packet, 0), true);
        expect(general).toEqual({ fault: 0, topic, qos, messageId, payload, propertyBytes: 0 });
      }),
      { numRuns: 2_000 },
    );
  });
});
