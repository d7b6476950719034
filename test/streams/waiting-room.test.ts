import { expect, test } from 'vitest';
import { Member, WaitingRoom } from '../../src/streams/subscriber.ts';

const mebibyte = 1_048_576;
const piece = { bytes: Buffer.alloc(32_768), position: 'p' };

/** Gives it so much that it is dropped, and says how much it was given before. */
function fill(member: Member<string>): number {
  let bytes = 0;
  while (!member.hasEnded) {
    member.give(piece, 0);
    if (!member.hasEnded) bytes += piece.bytes.length;
  }
  return bytes;
}

test('a mebibyte waits for one reader; the more wait, the less, and of all together not much more than may', () => {
  const room = new WaitingRoom(32 * mebibyte);
  const add = () => new Member('p', 0, room);
  expect(fill(add())).toBe(mebibyte);
  const members = Array.from({ length: 200 }, add);
  const filled = members.map(fill);
  expect(filled.at(0)).toBe(mebibyte);
  expect(filled.at(-1)).toBeLessThan(mebibyte / 4);
  // 64 KiB may wait for each, also where nothing is left.
  expect(room.bytes).toBeLessThanOrEqual((32 + 201 / 16) * mebibyte);
  // Whoever keeps up is dropped by nobody.
  const quick = add();
  quick.give(piece, 0);
  quick.give(piece, 0);
  expect(quick.hasEnded).toBe(false);
  for (const member of [...members, quick]) member.leave();
  expect(room.bytes).toBe(mebibyte);
});

test('what is read, or has nobody to read it, waits no longer', async () => {
  const room = new WaitingRoom(32 * mebibyte);
  const [read, left] = [new Member('p', 0, room), new Member('p', 0, room)];
  for (const member of [read, left]) member.give(piece, 0);
  expect(room.bytes).toBe(65_536);
  await read.read().next();
  expect(room.bytes).toBe(32_768);
  left.leave();
  left.give(piece, 0);
  expect(room.bytes).toBe(0);
});
