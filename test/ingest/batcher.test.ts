import { beforeEach, expect, test } from 'vitest';
import type { Committing } from '../../src/db/database.ts';
import type { Batch } from '../../src/ingest/commit.ts';
import { createBatcher } from '../../src/ingest/ingest.ts';
import { DeviceQueues } from '../../src/ingest/queue.ts';
import type { WallMs } from '../../src/lib/clock-readings.ts';
import { device, measurementsFragment, tickFragment, fragmentIds } from './fragments.ts';

/** A batch that the batcher has begun. It does only what the test tells it to. */
type Begun = { batch: Batch; commit(): Committing; finish(): Promise<void> };

type BatcherOptions = Parameters<typeof createBatcher>[0];
const options: BatcherOptions = {
  maxInFlight: 2,
  anotherAtMessages: 3,
  anotherAfterMs: 60_000,
  maxBatchItems: 100,
};

let queues: DeviceQueues;
let batcher: ReturnType<typeof createBatcher>;
let begun: Begun[];
beforeEach(() => start());

function start(changed: Partial<BatcherOptions> = {}): void {
  queues = new DeviceQueues(100);
  begun = [];
  const storeBatch = (batch: Batch) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const commit = () => {
      const committing = { committed: promise } as unknown as Committing;
      batch.onCommitSent(committing);
      return committing;
    };
    const finish = async () => {
      resolve();
      await turnOfTheLoop();
    };
    begun.push({ batch, commit, finish });
    return promise;
  };
  batcher = createBatcher({ ...options, ...changed }, queues, storeBatch, {
    monotonicClock: Date.now,
  });
}

async function turnOfTheLoop(): Promise<void> {
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Messages that arrive in one turn of the event loop, each with a name and the number of its device. */
async function arrive(...messages: [deviceId: number, id: string][]): Promise<void> {
  for (const [deviceId, id] of messages) {
    queues.add(queues.queueOf(device(deviceId)), measurementsFragment(id, 1));
    batcher.wake();
  }
  await turnOfTheLoop();
}

const idsBegun = () => begun.map(({ batch }) => fragmentIds(batch.deviceBatches));

test('messages of one turn of the event loop share a batch; later ones wait for its end', async () => {
  await arrive([1, 'a'], [2, 'b']);
  await arrive([3, 'c']);
  await arrive([1, 'd']);
  expect(idsBegun()).toEqual([['a', 'b']]);
  await begun[0]?.finish();
  expect(idsBegun()).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ]);
});

test('enough waiting messages begin another one beside it, as often as allowed', async () => {
  await arrive([1, 'a']);
  await arrive([2, 'b'], [3, 'c'], [4, 'd']);
  await arrive([5, 'e'], [6, 'f'], [7, 'g']);
  expect(idsBegun()).toEqual([['a'], ['b', 'c', 'd']]);
  expect(begun[1]?.batch.behind).toBeNull();
});

test('a batch that takes long lets others begin beside it', async () => {
  start({ anotherAfterMs: 1 });
  await arrive([1, 'a']);
  await arrive([2, 'b']);
  await expect.poll(idsBegun).toEqual([['a'], ['b']]);
});

test('behind a commit the same devices continue, planned on top of it', async () => {
  await arrive([1, 'a']);
  await arrive([1, 'b'], [2, 'c']);
  const committing = begun[0]?.commit();
  expect(idsBegun()).toEqual([['a'], ['c', 'b']]);
  expect(begun[1]?.batch.behind?.committing).toBe(committing);
});

test('a finished batch keeps no earlier one in memory', async () => {
  await arrive([1, 'a']);
  await arrive([1, 'b']);
  begun[0]?.commit();
  expect(begun[1]?.batch.behind).toBe(begun[0]?.batch);
  await begun[0]?.finish();
  await begun[1]?.finish();
  expect(begun[1]?.batch.behind).toBeNull();
});

test('only one batch runs behind a commit, and none beside it', async () => {
  await arrive([1, 'a']);
  begun[0]?.commit();
  await arrive([1, 'b']);
  await arrive([2, 'c'], [3, 'd'], [4, 'e']);
  begun[1]?.commit();
  expect(idsBegun()).toEqual([['a'], ['b']]);
  await begun[0]?.finish();
  expect(idsBegun()).toEqual([['a'], ['b'], ['c', 'd', 'e']]);
  expect(begun[2]?.batch.behind).toBeNull();
});

test('of two parallel batches neither lets its devices continue before it is done', async () => {
  await arrive([1, 'a']);
  await arrive([2, 'b'], [3, 'c'], [4, 'd']);
  begun[0]?.commit();
  await arrive([1, 'e']);
  expect(begun).toHaveLength(2);
  await begun[1]?.finish();
  expect(begun).toHaveLength(2);
  await begun[0]?.finish();
  expect(idsBegun()[2]).toEqual(['e']);
});

test('stored devices of a batch continue while the rest is retried', async () => {
  await arrive([1, 'a'], [2, 'b']);
  const [batch] = begun;
  await arrive([1, 'c'], [2, 'd'], [3, 'e']);
  await arrive([4, 'f']);
  const ofOne = batch?.batch.deviceBatches.filter(({ queue }) => queue.device.deviceId === 1) ?? [];
  batch?.batch.partDone(ofOne);
  await begun[1]?.finish();
  expect(idsBegun()).toEqual([['a', 'b'], ['e'], ['f', 'c']]);
  await batch?.finish();
  await begun[2]?.finish();
  expect(idsBegun()).toEqual([['a', 'b'], ['e'], ['f', 'c'], ['d']]);
});

test('it is drained when nothing is under way any more', async () => {
  await batcher.drain();
  await arrive([1, 'a']);
  await arrive([1, 'b']);
  let isDrained = false;
  const drained = batcher.drain().then(() => (isDrained = true));
  await begun[0]?.finish();
  expect(isDrained).toBe(false);
  await begun[1]?.finish();
  await drained;
});

test('it begins nothing once it is stopped', async () => {
  await arrive([1, 'a']);
  await arrive([1, 'b']);
  batcher.stop();
  await begun[0]?.finish();
  expect(idsBegun()).toEqual([['a']]);
});

/** A tick for the device with that number. */
async function tick(deviceId: number, id: string): Promise<void> {
  queues.add(queues.queueOf(device(deviceId)), tickFragment(id));
  batcher.wake();
  await turnOfTheLoop();
}

test('ticks have their own batch, and messages do not wait for it', async () => {
  await tick(1, 'tick 1');
  await arrive([2, 'a']);
  await tick(3, 'tick 3');
  expect(idsBegun()).toEqual([['tick 1'], ['a']]);
  begun[1]?.commit();
  await arrive([4, 'b']);
  expect(idsBegun()).toEqual([['tick 1'], ['a'], ['b']]);
  expect(begun[2]?.batch.behind).toBe(begun[1]?.batch);
  // While a commit is under way no batch of ticks begins, because it would be planned on top of it.
  await begun[0]?.finish();
  expect(idsBegun()).toHaveLength(3);
  await begun[1]?.finish();
  expect(idsBegun().at(-1)).toEqual(['tick 3']);
});

test('a message that joins a tick of its device takes it along, in order', async () => {
  await arrive([2, 'a']);
  await tick(9, 'tick 9');
  await tick(1, 'tick 1');
  await arrive([1, 'b']);
  expect(idsBegun()).toEqual([['a'], ['tick 9']]);
  await begun[0]?.finish();
  expect(idsBegun().at(-1)).toEqual(['tick 1', 'b']);
  const drained = batcher.drain();
  await begun[1]?.finish();
  await begun[2]?.finish();
  await drained;
});

test('a storm of alarms has its own batch, and nobody else waits for it', async () => {
  const device1 = device(1, 1);
  const signals = Array.from({ length: 32 }, () => ({
    kind: 'ended' as const,
    device: device1,
    arrivedTs: 0 as WallMs,
    of: [{ puId: 1, stId: 1, evId: 1 }],
    ts: 0,
  }));
  queues.taken.note(2, Date.now());
  queues.noteStorms(signals, Date.now());
  const arriveOf = async (accountId: number, deviceId: number, id: string) => {
    queues.add(queues.queueOf(device(deviceId, accountId)), measurementsFragment(id, 1));
    batcher.wake();
    await turnOfTheLoop();
  };
  await arriveOf(1, 1, 'storm');
  await arriveOf(2, 2, 'a');
  begun[1]?.commit();
  await arriveOf(1, 3, 'storm goes on');
  await arriveOf(2, 2, 'b');
  expect(idsBegun()).toEqual([['storm'], ['a'], ['b']]);
  expect(begun.map(({ batch }) => batch.behind?.deviceBatches.length ?? 0)).toEqual([0, 0, 1]);
  await begun[1]?.finish();
  await begun[2]?.finish();
  expect(idsBegun()).toHaveLength(3);
  let isDrained = false;
  const drained = batcher.drain().then(() => (isDrained = true));
  await begun[0]?.finish();
  expect(idsBegun().at(-1)).toEqual(['storm goes on']);
  expect(isDrained).toBe(false);
  await begun[3]?.finish();
  await drained;
});
