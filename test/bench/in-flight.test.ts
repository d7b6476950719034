import { expect, test } from 'vitest';
import { createInFlight, type InFlight } from '../../bench/client/in-flight.ts';

/** Sends a packet of two bytes: a header and its number. */
function send(inFlight: InFlight, seq: number): number {
  const place = inFlight.take();
  Object.assign(place, { seq, bytes: Buffer.from([0, 0x32, seq]), from: 1, to: 3 });
  return place.packetId;
}

test('an acknowledgement frees its place, once', () => {
  const inFlight = createInFlight(2);
  const first = send(inFlight, 0);
  const second = send(inFlight, 1);
  expect(inFlight.isFull()).toBe(true);
  expect(inFlight.settle(second)?.seq).toBe(1);
  expect(inFlight.settle(second)).toBeNull();
  expect(inFlight.settle(0)).toBeNull();
  expect(inFlight.pending()).toBe(1);
  expect(inFlight.settle(first)?.seq).toBe(0);
});

test('a packet identifier is not reused while its message is in flight', () => {
  const inFlight = createInFlight(2);
  const kept = send(inFlight, 0);
  for (let seq = 1; seq < 200_000; seq += 1) {
    const id = send(inFlight, seq);
    if (id === kept || id < 1 || id > 65_535) throw new Error(`${id} was given to message ${seq}.`);
    expect(inFlight.settle(id)?.seq).toBe(seq);
  }
});

test('unacknowledged messages are sent again in order, with DUP', () => {
  const inFlight = createInFlight(3);
  const ids = [0, 1, 2].map((seq) => send(inFlight, seq));
  inFlight.settle(ids[1] ?? 0);
  send(inFlight, 3);
  const again = inFlight.unsettled().map((packet) => [...packet]);
  expect(again).toEqual([
    [0x3a, 0],
    [0x3a, 2],
    [0x3a, 3],
  ]);
});
