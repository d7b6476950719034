import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createUnacknowledged } from '../../../connector/bridge/client.ts';

type Unacknowledged = ReturnType<typeof createUnacknowledged>;
type UnacknowledgedPacket = Parameters<Unacknowledged['settle']>[0];
const budget = { maxMessages: 1_000, maxBytes: 1_000_000 };
const message = (
  stream: PassThrough,
  messageId: number,
  bytes = 10,
  qos = 1,
): UnacknowledgedPacket => ({
  qos,
  messageId,
  bytes,
  isStored: false,
  sinceMs: 0,
  stream,
});

/** The packet identifiers of the PUBACKs written so far. */
function acknowledged(stream: PassThrough): number[] {
  const bytes = (stream.read() as Buffer | null) ?? Buffer.alloc(0);
  const ids: number[] = [];
  for (let at = 0; at < bytes.length; at += 4) {
    expect([bytes[at], bytes[at + 1]]).toEqual([0x40, 2]);
    ids.push(bytes.readUInt16BE(at + 2));
  }
  return ids;
}

test('acknowledgements keep the order of arrival, whatever the order of the commits', () => {
  const orders = fc
    .integer({ min: 1, max: 30 })
    .chain((count) => fc.shuffledSubarray([...Array(count).keys()], { minLength: count }));
  fc.assert(
    fc.property(orders, (order) => {
      const stream = new PassThrough();
      const unacknowledged = createUnacknowledged(budget, () => undefined);
      const all = order.map((_, place) => message(stream, 300 + place));
      for (const held of all) unacknowledged.hold(held);
      const stored = new Set<number>();
      const seen: number[] = [];
      for (const place of order) {
        unacknowledged.settle(all[place] as UnacknowledgedPacket);
        stored.add(place);
        seen.push(...acknowledged(stream));
        // Nothing that is not stored, and nothing after it.
        const firstOpen = all.findIndex((_, index) => !stored.has(index));
        expect(seen).toHaveLength(firstOpen < 0 ? all.length : firstOpen);
      }
      expect(seen).toEqual(all.map(({ messageId }) => messageId));
      expect(unacknowledged.count()).toBe(0);
    }),
  );
});

test('messages of a connection that ended are not acknowledged on the next one', () => {
  const [before, after] = [new PassThrough(), new PassThrough()];
  const unacknowledged = createUnacknowledged(budget, () => undefined);
  const old = message(before, 1);
  unacknowledged.hold(old);
  before.destroy();
  unacknowledged.forgetOrder();
  const again = message(after, 1);
  unacknowledged.hold(again);
  unacknowledged.settle(old);
  expect(acknowledged(after)).toEqual([]);
  unacknowledged.settle(again);
  expect(acknowledged(after)).toEqual([1]);
});

test('reading continues when there is room again, in messages and in bytes', () => {
  for (const limits of [
    { maxMessages: 2, maxBytes: 1_000 },
    { maxMessages: 1_000, maxBytes: 20 },
  ]) {
    const stream = new PassThrough();
    const unacknowledged = createUnacknowledged(limits, () => undefined);
    const held = [message(stream, 1), message(stream, 0, 10, 0)];
    let reads = 0;
    for (const one of held) {
      unacknowledged.hold(one);
      unacknowledged.whenFree(() => (reads += 1));
    }
    expect(reads).toBe(1);
    unacknowledged.settle(held[1] as UnacknowledgedPacket);
    expect(reads).toBe(2);
    // QoS 0 has no acknowledgement.
    expect(acknowledged(stream)).toEqual([]);
    unacknowledged.giveUp(held[0] as UnacknowledgedPacket);
    expect(unacknowledged.count()).toBe(0);
  }
});
