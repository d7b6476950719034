import { generate } from 'mqtt-packet';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PacketBuffer } from '../../connector/mqtt/frames.ts';
import { publish, publishBytes, readProperties } from '../../connector/mqtt/v5.ts';

describe('a property list', () => {
  const places: Parameters<typeof readProperties>[3][] = [
    'connect',
    'will',
    'publish',
    'ack',
    'subscribe',
    'unsubscribe',
    'disconnect',
  ];

  test('of any bytes is read within its packet, or refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), fc.constantFrom(...places), (array, place) => {
        const bytes = Buffer.from(array);
        const limit = Math.floor(bytes.length / 2);
        const { fault, end } = readProperties(bytes, 0, limit, place);
        return fault === 0 ? end >= 1 && end <= limit : fault === 0x81 || fault === 0x82;
      }),
      { numRuns: 5_000 },
    );
  });

  test('written by a client library is read to its end', () => {
    const word = fc
      .string({ maxLength: 20 })
      .filter((value) => !/[\0+#]/.test(value) && value.isWellFormed());
    const given = fc.record(
      {
        payloadFormatIndicator: fc.boolean(),
        messageExpiryInterval: fc.nat(),
        contentType: word,
        responseTopic: word,
        correlationData: fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)),
        userProperties: fc.dictionary(word, fc.oneof(word, fc.array(word, { minLength: 1 }))),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(given, (values) => {
        const bytes = generate(
          {
            cmd: 'publish',
            topic: 't',
            payload: 'end',
            qos: 0,
            dup: false,
            retain: false,
            properties: values,
          },
          { protocolVersion: 5 },
        );
        // It writes nothing at all if it finds something wrong.
        fc.pre(bytes.length > 0);
        const at = bytes.indexOf('\0\x01t') + 3;
        const { fault, end } = readProperties(bytes, at, bytes.length, 'publish');
        return fault === 0 && end === bytes.length - 3;
      }),
      { numRuns: 500 },
    );
  });
});

test('the length of a PUBLISH is known before it is built', () => {
  for (const topic of ['t', 'devices/é/down/display'])
    for (const size of [0, 100, 127, 128, 16_370, 16_384, 300_000])
      for (const qos of [0, 1] as const)
        for (const expirySeconds of [null, 60]) {
          const message = { topic, qos, messageId: 1, body: Buffer.alloc(size), expirySeconds };
          expect(publishBytes(message)).toBe(publish(message).length);
        }
});

test('parts of packets are joined whatever their sizes', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(40), { minLength: 1 }),
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 }),
      (sizes, cuts) => {
        const all = Buffer.concat(sizes.map((size, n) => Buffer.alloc(size + 1, n)));
        const ends: number[] = [];
        for (const size of sizes) ends.push((ends.at(-1) ?? 0) + size + 1);
        const buffer = new PacketBuffer();
        const taken: Buffer[] = [];
        for (let at = 0, n = 0; at < all.length; n += 1) {
          const chunk = all.subarray(at, at + (cuts[n % cuts.length] ?? 1));
          at += chunk.length;
          const whole = ends.findLast((end) => end <= at) ?? 0;
          const next = ends.find((end) => end > at) ?? at;
          const part = buffer.take(chunk, at - whole, next - whole);
          if (part) taken.push(Buffer.from(part));
          expect(Buffer.concat(taken).length).toBe(whole);
        }
        expect(Buffer.concat(taken)).toEqual(all);
      },
    ),
  );
});
