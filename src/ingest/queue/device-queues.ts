import { append } from '../../lib/append.ts';
import type { DeviceIdentity } from '../../contract/uplink.ts';
import { createAccountTurns } from './account-turns.ts';
import { turnsPerBatch } from '../rules/budget.ts';
import type { Unit } from '../rules/message.ts';
import { newDeviceQueue } from './device-queue.ts';
import type { DeviceQueue, Work } from './device-queue.ts';
import { takeByTurns } from './take-turns.ts';
import { isWithdrawn } from './withdrawn.ts';

export type DeviceQueues = ReturnType<typeof createDeviceQueues>;

/** What a batch costs, about (`Budget`). */
const defaultCost = 5_000;

/**
 * `maxIdle`: how many devices without waiting messages are remembered (least recently used go first).
 * `batchCost`: what a batch takes as a rule; accounts' turns are parts of it.
 */
export function createDeviceQueues(maxIdle: number, batchCost = defaultCost) {
  /** The least recently used one first. */
  const queues = new Map<number, DeviceQueue>();
  let newest: DeviceQueue | undefined;
  const turns = createAccountTurns<DeviceQueue>({
    quantum: Math.max(1, batchCost / turnsPerBatch),
    maxDebt: 4 * batchCost,
  });
  let waiting = 0;

  function queueOf(device: DeviceIdentity): DeviceQueue {
    const { deviceId } = device;
    const known = queues.get(deviceId);
    if (known && known === newest) return known;
    if (known) queues.delete(deviceId);
    const queue = (newest = known ?? newDeviceQueue(device));
    queues.set(deviceId, queue);
    if (queues.size > maxIdle) evictIdle(queue);
    return queue;
  }

  /** A hundredth at once. A queue in use is spared, and so is the one that is about to be. */
  function evictIdle(used: DeviceQueue): void {
    let looked = 0;
    for (const [deviceId, queue] of queues) {
      if (looked++ >= maxIdle / 100 || queue === used) return;
      queues.delete(deviceId);
      if (queue.busy || queue.waiting.length > 0) queues.set(deviceId, queue);
    }
  }

  function markReady(queue: DeviceQueue): void {
    if (queue.ready || queue.busy || queue.waiting.length === 0) return;
    queue.ready = true;
    turns.add(queue);
  }

  return {
    queueOf,
    add(queue: DeviceQueue, unit: Unit): void {
      queue.waiting = append(queue.waiting, unit);
      queue.parsing += unit.message.uplink.parsing ?? 0;
      waiting += 1;
      markReady(queue);
    },
    /**
     * The next batch, of about `maxCost` (`costOf`): accounts take turns, then their devices, in the order in
     * which they became ready. Where one account waits alone, whole queues.
     */
    take(maxCost: number): Work[] {
      const batch = takeByTurns(turns, maxCost);
      for (const { units } of batch) waiting -= units.length;
      return batch;
    },
    /** Charges accounts what their part of a batch really cost, beyond what they were (`Plan`). */
    charge(batch: Work[], charges: ReadonlyMap<number, number>): void {
      for (const { queue } of batch) queue.charged = 0;
      for (const [accountId, cost] of charges) turns.charge(accountId, cost);
    },
    /** Whether messages of other accounts wait for a transaction. */
    othersWait: turns.othersWait,
    /** Takes back what a batch had no room for: it is the next of its queues, which are still that batch's. */
    putBack(left: Work[]): void {
      for (const { queue, units } of left) {
        queue.waiting = [...units, ...queue.waiting];
        waiting += units.length;
      }
    },
    /** What waited behind a batch of these queues may go on. */
    release(batch: Work[]): void {
      for (const { queue } of batch) {
        queue.busy = false;
        markReady(queue);
      }
    },
    /** Gives those of a device's messages that need not wait any more; the others keep their order. */
    takeWithdrawn(deviceId: number): Unit[] {
      const queue = queues.get(deviceId);
      const gone = queue?.waiting.filter(isWithdrawn) ?? [];
      if (!queue || gone.length === 0) return gone;
      queue.waiting = queue.waiting.filter((unit) => !isWithdrawn(unit));
      waiting -= gone.length;
      if (queue.ready && queue.waiting.length === 0) {
        queue.ready = false;
        turns.remove(queue);
      }
      return gone;
    },
    /** Makes the next batch read the device's context again. */
    forget(deviceId?: number): void {
      if (deviceId === undefined) for (const queue of queues.values()) queue.context = null;
      else {
        const queue = queues.get(deviceId);
        if (queue) queue.context = null;
      }
    },
    hasReady: () => turns.size() > 0,
    countWaiting: () => waiting,
    *waiting(): Generator<Unit> {
      for (const queue of queues.values()) yield* queue.waiting;
    },
  };
}
