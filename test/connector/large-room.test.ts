import { describe, expect, test } from 'vitest';
import { createLargeRoom, type LargePlace, type LargeRoom } from '../../connector/device/uplink.ts';

const size = 256;

/** Asks for places of `size`, and remembers who got in, in order. */
function visitors(room: LargeRoom) {
  const entered: string[] = [];
  const places = new Map<string, LargePlace>();
  return {
    entered,
    enter(account: number, name: string, bytes = size): void {
      const place = room.enter(account, bytes, () => entered.push(name));
      if (place.isIn) entered.push(name);
      places.set(name, place);
    },
    leave: (...names: string[]) => names.forEach((name) => places.get(name)?.leave()),
    isIn: (name: string) => places.get(name)?.isIn,
  };
}

describe('the room for large messages', () => {
  test('is half taken by one account, however much it asks for, and some is left for others', () => {
    const maxBytes = 64 * size;
    const room = createLargeRoom(maxBytes);
    const all = visitors(room);
    for (let n = 0; n < 200; n += 1) all.enter(1, `greedy ${n}`);
    expect(room.bytes() / maxBytes).toBeCloseTo(1 / 2, 1);
    expect(room.waiting()).toBe(200 - room.bytes() / size);
    for (let account = 2; account <= 10; account += 1)
      for (let n = 0; n < 200; n += 1) all.enter(account, `${account} ${n}`);
    for (let account = 11; account <= 18; account += 1) {
      all.enter(account, `honest ${account}`);
      expect(all.isIn(`honest ${account}`)).toBe(true);
    }
    expect(room.bytes()).toBeLessThanOrEqual(maxBytes);
  });

  test('remembers what an account has when a place of before is left again', () => {
    const room = createLargeRoom(64 * size);
    const { enter, leave, isIn } = visitors(room);
    enter(1, 'before');
    leave('before');
    enter(1, 'large', 40 * size);
    leave('before');
    enter(1, 'more', 20 * size);
    expect([isIn('large'), isIn('more')]).toEqual([true, false]);
  });

  test('is given to accounts in turn, and within an account in order', () => {
    const room = createLargeRoom(size);
    const { entered, enter, leave } = visitors(room);
    enter(1, 'a1');
    for (const name of ['a2', 'a3', 'a4']) enter(1, name);
    for (const name of ['b1', 'b2']) enter(2, name);
    for (let n = 0; n < 6; n += 1) leave(entered.at(-1) ?? '');
    expect(entered).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'a4']);
    expect([room.bytes(), room.waiting()]).toEqual([0, 0]);
  });

  test('lets in one that is larger than all of it, alone', () => {
    const room = createLargeRoom(size);
    const { entered, enter, leave } = visitors(room);
    enter(1, 'large', 10 * size);
    enter(2, 'other');
    expect(entered).toEqual(['large']);
    leave('large', 'large');
    expect(entered).toEqual(['large', 'other']);
    expect(room.bytes()).toBe(size);
  });

  test('is not taken by who leaves while waiting', () => {
    const room = createLargeRoom(size);
    const { entered, enter, leave } = visitors(room);
    for (const name of ['a', 'b', 'c']) enter(1, name);
    leave('b', 'b', 'a');
    expect(entered).toEqual(['a', 'c']);
    leave('c');
    expect([room.bytes(), room.waiting()]).toEqual([0, 0]);
  });

  test('is passed on by many who leave as soon as they are let in', () => {
    const room = createLargeRoom(size);
    const first = room.enter(1, size, () => {});
    let left = 0;
    for (let n = 0; n < 20_000; n += 1) {
      const place: LargePlace = room.enter(n % 7, size, () => {
        left += 1;
        place.leave();
      });
    }
    first.leave();
    expect([left, room.bytes(), room.waiting()]).toEqual([20_000, 0, 0]);
  });
});
