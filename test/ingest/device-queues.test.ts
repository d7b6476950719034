import { describe, expect, it } from 'vitest';
import { DeviceQueues, newMessage, takeBatch, type DeviceBatch } from '../../src/ingest/queue.ts';
import type { AlarmSignal } from '../../src/contract/alarm.ts';
import type { Message } from '../../src/ingest/rules/model.ts';
import type { WallMs } from '../../src/lib/clock-readings.ts';
import { bisect } from '../../src/ingest/plan.ts';
import { device, measurementsFragment, tickFragment, fragmentIds } from './fragments.ts';

describe('queues', () => {
  it('return a device’s messages in order of arrival', () => {
    const queues = new DeviceQueues(10);
    const queue = queues.queueOf(device(1));
    for (const id of ['a', 'b', 'c']) queues.add(queue, measurementsFragment(id, 1));
    expect(fragmentIds(takeBatch(queues, 100))).toEqual(['a', 'b', 'c']);
  });

  it('never put a device into two batches at once', () => {
    const queues = new DeviceQueues(10);
    const queue = queues.queueOf(device(1));
    queues.add(queue, measurementsFragment('a', 1));
    const first = takeBatch(queues, 100);
    queues.add(queue, measurementsFragment('b', 1));
    queues.add(queues.queueOf(device(2)), measurementsFragment('c', 1));
    expect(fragmentIds(takeBatch(queues, 100))).toEqual(['c']);
    queues.release(first);
    expect(fragmentIds(takeBatch(queues, 100))).toEqual(['b']);
  });

  it('fill a batch up to about the limit and leave the rest queued', () => {
    const queues = new DeviceQueues(10);
    // Forty more than its measurements, because none was read yet.
    for (const n of [1, 2, 3])
      queues.add(queues.queueOf(device(n)), measurementsFragment(`d${n}`, 60));
    expect(fragmentIds(takeBatch(queues, 150))).toEqual(['d1', 'd2']);
    expect(fragmentIds(takeBatch(queues, 150))).toEqual(['d3']);
  });

  it('put a message that is larger than the limit into a batch of its own', () => {
    const queues = new DeviceQueues(10);
    const queue = queues.queueOf(device(1));
    queues.add(queue, measurementsFragment('large', 500));
    queues.add(queue, measurementsFragment('small', 1));
    const first = takeBatch(queues, 100);
    expect(fragmentIds(first)).toEqual(['large']);
    queues.release(first);
    expect(fragmentIds(takeBatch(queues, 100))).toEqual(['small']);
  });

  it('drop what was withdrawn, and keep the rest queued', () => {
    const queues = new DeviceQueues(10);
    const [some, all] = [queues.queueOf(device(1)), queues.queueOf(device(2))];
    const failed: string[] = [];
    queues.add(some, measurementsFragment('a', 1, failed));
    queues.add(some, measurementsFragment('b', 1));
    queues.add(all, measurementsFragment('c', 1, failed));
    for (const deviceId of [1, 2, 3]) queues.withdraw(deviceId);
    expect(failed).toEqual(['a', 'c']);
    expect(queues.waiting).toBe(1);
    expect(fragmentIds(takeBatch(queues, 100))).toEqual(['b']);
    expect(queues.readyDevices.size).toBe(0);
  });

  it('forget idle devices beyond the limit, never one with messages', () => {
    const queues = new DeviceQueues(2);
    const busy = queues.queueOf(device(1));
    queues.add(busy, measurementsFragment('kept', 1));
    const idle = queues.queueOf(device(2));
    queues.queueOf(device(3));
    queues.queueOf(device(4));
    queues.queueOf(device(5));
    expect(queues.queueOf(device(1))).toBe(busy);
    expect(queues.queueOf(device(2))).not.toBe(idle);
  });
});

describe('queues of several accounts', () => {
  const fill = (
    queues: DeviceQueues,
    deviceId: number,
    accountId: number,
    messages: number,
    size = 1,
  ) => {
    const queue = queues.queueOf(device(deviceId, accountId));
    for (let n = 0; n < messages; n++)
      queues.add(queue, measurementsFragment(`${deviceId}.${n}`, size));
    return queue;
  };
  const countOf = (batch: DeviceBatch[], accountId: number) =>
    fragmentIds(batch.filter(({ queue }) => queue.accountId === accountId)).length;

  it('share a batch, however many they are and however much each has waiting', () => {
    const queues = new DeviceQueues(2_000, 100);
    for (let n = 1; n <= 1_000; n++) fill(queues, n, 1, 1);
    fill(queues, 2_001, 2, 500);
    fill(queues, 2_002, 3, 1);
    const batch = takeBatch(queues, 200);
    expect(countOf(batch, 3)).toBe(1);
    // A device that was not read yet costs forty more.
    expect(countOf(batch, 2)).toBeGreaterThan(30);
    expect(countOf(batch, 1)).toBeGreaterThanOrEqual(2);
  });

  it('continue in the same batch if room is left, each device in order', () => {
    const queues = new DeviceQueues(10, 100);
    fill(queues, 1, 1, 60);
    fill(queues, 2, 2, 1);
    const batch = takeBatch(queues, 1_000);
    const all = Array.from({ length: 60 }, (_, n) => `1.${n}`);
    expect(batch).toHaveLength(2);
    expect(fragmentIds(batch.filter(({ queue }) => queue.accountId === 1))).toEqual(all);
    expect(queues.waiting).toBe(0);
  });

  it('keep what a batch had no room for until it is done', () => {
    const queues = new DeviceQueues(10, 100);
    fill(queues, 1, 1, 60);
    fill(queues, 2, 2, 60);
    const batch = takeBatch(queues, 50);
    const [one, two] = [countOf(batch, 1), countOf(batch, 2)];
    expect(queues.readyDevices.size).toBe(0);
    expect(queues.waiting).toBe(120 - one - two);
    queues.release(batch);
    expect(fragmentIds(takeBatch(queues, 1_000))).toEqual(
      expect.arrayContaining([`1.${one}`, `1.59`, `2.${two}`, `2.59`]),
    );
  });

  it('pay for costs that are known only later, and for parsing', () => {
    const queues = new DeviceQueues(10, 100);
    fill(queues, 1, 1, 1);
    fill(queues, 2, 2, 1);
    const batch = takeBatch(queues, 100);
    queues.charge(batch, new Map([[1, 300]]));
    queues.release(batch);
    fill(queues, 1, 1, 1);
    for (let n = 0; n < 40; n++) fill(queues, 10 + n, 2, 1);
    expect(countOf(takeBatch(queues, 100), 1)).toBe(0);
    const parsed = new DeviceQueues(10, 100);
    const queue = parsed.queueOf(device(1, 1));
    const fragment = measurementsFragment('parsed', 1);
    parsed.add(queue, { ...fragment, message: withParsing(fragment.message, 300) });
    for (let n = 0; n < 40; n++) fill(parsed, 10 + n, 2, 1);
    const first = takeBatch(parsed, 50);
    parsed.release(first);
    fill(parsed, 1, 1, 1);
    expect(countOf(takeBatch(parsed, 100), 1)).toBe(0);
  });

  it('pay for ticks in the turns of ticks', () => {
    const queues = new DeviceQueues(100, 100);
    const fallDue = (deviceId: number, accountId: number) =>
      queues.add(queues.queueOf(device(deviceId, accountId)), tickFragment(`${deviceId}`));
    fallDue(1, 1);
    const batch = takeBatch(queues, 100, queues.readyTicks);
    queues.charge(batch, new Map([[1, 300]]));
    queues.release(batch);
    fallDue(1, 1);
    for (let n = 0; n < 10; n++) fallDue(10 + n, 2);
    const next = takeBatch(queues, 100, queues.readyTicks);
    expect([countOf(next, 1), countOf(next, 2)]).toEqual([0, 3]);
  });

  it('pay for a storm in the turns of storms and of messages', () => {
    const queues = besideOthers(100, 100);
    queues.noteStorms(signalsOf(1, 40), 0);
    queues.noteStorms(signalsOf(2, 40), 0);
    fill(queues, 1, 1, 1);
    const batch = takeBatch(queues, 100, queues.readyStorms);
    queues.charge(batch, new Map([[1, 300]]));
    queues.release(batch);
    fill(queues, 1, 1, 1);
    for (let n = 0; n < 10; n++) fill(queues, 10 + n, 2, 1);
    const next = takeBatch(queues, 100, queues.readyStorms);
    expect([countOf(next, 1), countOf(next, 2)]).toEqual([0, 3]);
  });

  const withParsing = ({ uplink, delivery, newUuid }: Message, parsing: number) =>
    newMessage({ ...uplink, parsingCost: parsing }, delivery, newUuid);
});

const at = { pId: 'p', puId: 1, stId: 1, evId: 1, ts: 0 };

/** Devices of the account of each of which an alarm fires and an episode ends: twice `count` in all. */
const signalsOf = (accountId: number, count: number): AlarmSignal[] =>
  Array.from({ length: count }, (_, n) => device(1_000 * accountId + n, accountId)).flatMap(
    (of) => [
      {
        kind: 'fired',
        device: of,
        arrivedTs: 0 as WallMs,
        event: { type: 'sense', ts: 0, cause: { engine: at, senses: [] } },
      } as unknown as AlarmSignal,
      { kind: 'ended', device: of, arrivedTs: 0 as WallMs, of: [at], ts: 0 },
    ],
  );

/** Queues of which another account's messages were taken just now. */
const besideOthers = (maxIdle: number, batchCost?: number) => {
  const queues = new DeviceQueues(maxIdle, batchCost);
  queues.taken.note(99, 0);
  return queues;
};

describe('an account with a storm of alarms', () => {
  const idsOf = (queues: DeviceQueues, from: 'readyDevices' | 'readyStorms') =>
    fragmentIds(takeBatch(queues, 100, queues[from]));

  it('has turns of its own, also for what waits already', () => {
    const queues = besideOthers(10);
    queues.add(queues.queueOf(device(1, 1)), measurementsFragment('before', 1));
    queues.add(queues.queueOf(device(2, 2)), measurementsFragment('other', 1));
    queues.noteStorms(signalsOf(1, 16), 0);
    queues.add(queues.queueOf(device(3, 1)), measurementsFragment('after', 1));
    expect(queues.othersWait(2)).toBe(true);
    expect(idsOf(queues, 'readyDevices')).toEqual(['other']);
    expect(idsOf(queues, 'readyStorms')).toEqual(['after', 'before']);
  });

  it('waits with the others again ten seconds after the last one', () => {
    const queues = besideOthers(10);
    queues.noteStorms(signalsOf(1, 16), 0);
    queues.noteStorms(signalsOf(2, 16), 5_000);
    queues.noteStorms(signalsOf(1, 16), 6_000);
    queues.noteStorms([], 15_500);
    for (const id of [1, 2])
      queues.add(queues.queueOf(device(id, id)), measurementsFragment(`${id}`, 1));
    expect(idsOf(queues, 'readyStorms')).toEqual(['1']);
    expect(idsOf(queues, 'readyDevices')).toEqual(['2']);
  });

  it('is none with few alarms in a transaction, or with measurements that are only late', () => {
    const queues = besideOthers(10);
    queues.noteStorms(signalsOf(1, 15), 0);
    queues.noteStorms(
      signalsOf(1, 100).map(({ device, arrivedTs }) => ({
        kind: 'late',
        device,
        arrivedTs,
        senses: [],
      })),
      0,
    );
    queues.add(queues.queueOf(device(1)), measurementsFragment('a', 1));
    expect(queues.readyStorms.size).toBe(0);
  });

  it('is none if nobody else sent anything for ten seconds', () => {
    const queues = besideOthers(10);
    queues.taken.note(1, 5_000);
    queues.noteStorms(signalsOf(1, 16), 10_001);
    queues.add(queues.queueOf(device(1, 1)), measurementsFragment('a', 1));
    expect(queues.readyStorms.size).toBe(0);
  });

  it('is none with devices that only move or are heard', () => {
    const queues = besideOthers(10);
    queues.noteStorms(
      signalsOf(1, 100).map(({ device, arrivedTs }) => ({
        kind: 'heard',
        device,
        arrivedTs,
        sIds: [],
      })),
      0,
    );
    queues.add(queues.queueOf(device(1)), measurementsFragment('a', 1));
    expect(queues.readyStorms.size).toBe(0);
  });

  it('has its messages withdrawn from where they wait', () => {
    const queues = besideOthers(10);
    const failures: string[] = [];
    queues.add(queues.queueOf(device(1)), measurementsFragment('a', 1, failures));
    queues.noteStorms(signalsOf(1, 16), 0);
    queues.withdraw(1);
    expect(failures).toEqual(['a']);
    expect([queues.readyDevices.size, queues.readyStorms.size, queues.waiting]).toEqual([0, 0, 0]);
  });
});

describe('queues that are forgotten', () => {
  it('are the least recently used', () => {
    const queues = new DeviceQueues(3);
    const [first, second, third] = [1, 2, 3].map((n) => queues.queueOf(device(n)));
    queues.queueOf(device(1));
    queues.queueOf(device(4));
    expect(queues.queueOf(device(1))).toBe(first);
    expect(queues.queueOf(device(3))).toBe(third);
    expect(queues.queueOf(device(2))).not.toBe(second);
  });

  it('do not include the one that is asked for, even if all others are in use', () => {
    const queues = new DeviceQueues(1);
    queues.add(queues.queueOf(device(1)), measurementsFragment('a', 1));
    const asked = queues.queueOf(device(2));
    expect(queues.queueOf(device(2))).toBe(asked);
  });
});

describe('requeued messages', () => {
  it('are the next of their device, and wait until their batch is done', () => {
    const queues = new DeviceQueues(10);
    const queue = queues.queueOf(device(1));
    for (const id of ['a', 'b']) queues.add(queue, measurementsFragment(id, 1));
    const batch = takeBatch(queues, 100);
    queues.add(queue, measurementsFragment('c', 1));
    queues.requeue([{ queue, fragments: batch[0]?.fragments.slice(1) ?? [] }]);
    expect(queues.waiting).toBe(2);
    expect(queues.readyDevices.size).toBe(0);
    queues.release(batch);
    expect(fragmentIds(takeBatch(queues, 100))).toEqual(['b', 'c']);
  });

  it('go behind other devices', () => {
    const queues = new DeviceQueues(10);
    const queue = queues.queueOf(device(1));
    queues.add(queue, measurementsFragment('a', 1));
    const batch = takeBatch(queues, 100);
    queues.add(queues.queueOf(device(2)), measurementsFragment('b', 1));
    queues.requeue(batch);
    queues.release(batch);
    expect(fragmentIds(takeBatch(queues, 100))).toEqual(['b', 'a']);
  });
});

describe('bisection', () => {
  it('halves by device, then by message, then by item, in order', () => {
    const queues = new DeviceQueues(10);
    const fragments = ['a', 'b'].map((id) => measurementsFragment(id, 2));
    const [one, two] = [queues.queueOf(device(1)), queues.queueOf(device(2))];
    const byDevice = bisect([
      { queue: one, fragments },
      { queue: two, fragments: [measurementsFragment('c', 1)] },
    ]);
    expect(byDevice?.map(fragmentIds)).toEqual([['a', 'b'], ['c']]);
    expect(bisect([{ queue: one, fragments }])?.map(fragmentIds)).toEqual([['a'], ['b']]);
    const [fragment] = fragments;
    const byItem = bisect([{ queue: one, fragments: fragment ? [fragment] : [] }]);
    expect(byItem?.map((part) => part[0]?.fragments.map(({ size }) => size))).toEqual([[1], [1]]);
    expect(fragment?.message.open).toBe(2);
  });

  it('leaves a single item alone', () => {
    const queue = new DeviceQueues(1).queueOf(device(1));
    expect(bisect([{ queue, fragments: [measurementsFragment('a', 1)] }])).toBeNull();
  });
});
