import fc from 'fast-check';
import { expect, test } from 'vitest';
import { FrameScanner, PacketBuffer } from '../../connector/mqtt/frames.ts';
import { connectPacket, publishPacket } from './raw.ts';
import { generate } from 'mqtt-packet';
import type { World } from './harness.ts';

const limits = {
  maxConnectBytes: 4_096,
  maxPacketBytes: 65_536,
  maxMeasurementPacketBytes: null,
  maxSubscriptions: 16,
};
const world = { device: { uuid: 'u', token: 't' } } as World;
const packets = [
  generate(connectPacket(world, { protocolVersion: 4 })),
  ...[0, 90, 100, 120, 127, 128, 200, 16_383, 20_000].map((length) =>
    generate(publishPacket('a', 'x'.repeat(length), { qos: 1, messageId: 1 })),
  ),
  generate({ cmd: 'pingreq' }),
];

test('packets are reassembled, wherever they were cut', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.nat(packets.length - 2).map((n) => packets[n + 1] as Buffer),
        { minLength: 1 },
      ),
      fc.array(fc.nat(3), { minLength: 1 }),
      fc.array(fc.nat(400)),
      (following, small, large) => {
        const scanner = new FrameScanner();
        scanner.advance(packets[0] as Buffer, 1, limits);
        const bytes = Buffer.concat(following);
        const buffer = new PacketBuffer();
        const whole: Buffer[] = [];
        const sizes = [...small, ...large];
        for (let at = 0, n = 0; at < bytes.length; n += 1) {
          const chunk = bytes.subarray(at, at + 1 + (sizes[n % sizes.length] as number));
          at += chunk.length;
          expect(scanner.advance(chunk, 1_000, limits)).toBe(chunk.length);
          const taken = buffer.take(chunk, scanner.begunBytes, scanner.wholeBytes);
          if (taken) whole.push(taken);
        }
        expect(Buffer.concat(whole).equals(bytes)).toBe(true);
        // Each piece ends with a packet.
        let ends = new Set<number>();
        for (const [n] of following.entries())
          ends = ends.add(Buffer.concat(following.slice(0, n + 1)).length);
        let length = 0;
        for (const piece of whole) expect(ends).toContain((length += piece.length));
      },
    ),
  );
});

test('a SUBSCRIBE counts as one, plus one for each 25 bytes after its fixed header', () => {
  const down = `devices/${'u'.repeat(36)}/down`;
  const countOf = (topics: string[]) => {
    const scanner = new FrameScanner();
    scanner.advance(packets[0] as Buffer, 1, limits);
    const subscriptions = topics.map((topic) => ({ topic, qos: 1 as const }));
    const bytes = generate({ cmd: 'subscribe', messageId: 1, subscriptions });
    expect(scanner.advance(bytes, 1_000, limits)).toBe(bytes.length);
    return [bytes.length - 2, scanner.otherUnits];
  };
  expect(countOf([`${down}/profile`, `${down}/state`])).toEqual([120, 5]);
  expect(countOf(['a'.repeat(19)])).toEqual([24, 1]);
  expect(countOf(['a'.repeat(20)])).toEqual([25, 2]);
});
