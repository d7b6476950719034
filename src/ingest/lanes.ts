import { append } from '../core/append.ts';
import type { DeviceIdentity } from '../core/uplink.ts';
import { createAccountTurns } from './account-turns.ts';
import { turnsPerBatch } from './budget.ts';
import type { Unit } from './entry.ts';
import { newLane } from './lane.ts';
import type { Lane, Work } from './lane.ts';
import { takeByTurns } from './take-turns.ts';
import { isWithdrawn } from './withdrawn.ts';

export type Lanes = ReturnType<typeof createLanes>;

/** What a batch costs, about (`Budget`). */
const defaultCost = 5_000;

/**
 * `maxIdle`: how many devices without waiting messages are remembered (least recently used go first).
 * `batchCost`: what a batch takes as a rule; accounts' turns are parts of it.
 */
export function createLanes(maxIdle: number, batchCost = defaultCost) {
  /** The least recently used one first. */
  const lanes = new Map<number, Lane>();
  let newest: Lane | undefined;
  const turns = createAccountTurns<Lane>({
    quantum: Math.max(1, batchCost / turnsPerBatch),
    maxDebt: 4 * batchCost,
  });
  let waiting = 0;

  function laneOf(device: DeviceIdentity): Lane {
    const { deviceId } = device;
    const known = lanes.get(deviceId);
    if (known && known === newest) return known;
    if (known) lanes.delete(deviceId);
    const lane = (newest = known ?? newLane(device));
    lanes.set(deviceId, lane);
    if (lanes.size > maxIdle) evictIdle(lane);
    return lane;
  }

  /** A hundredth at once. A lane in use is spared, and so is the one that is about to be. */
  function evictIdle(used: Lane): void {
    let looked = 0;
    for (const [deviceId, lane] of lanes) {
      if (looked++ >= maxIdle / 100 || lane === used) return;
      lanes.delete(deviceId);
      if (lane.busy || lane.waiting.length > 0) lanes.set(deviceId, lane);
    }
  }

  function markReady(lane: Lane): void {
    if (lane.ready || lane.busy || lane.waiting.length === 0) return;
    lane.ready = true;
    turns.add(lane);
  }

  return {
    laneOf,
    add(lane: Lane, unit: Unit): void {
      lane.waiting = append(lane.waiting, unit);
      lane.parsing += unit.entry.uplink.parsing ?? 0;
      waiting += 1;
      markReady(lane);
    },
    /**
     * The next batch, of about `maxCost` (`costOf`): accounts take turns, then their devices, in the order in
     * which they became ready. Where one account waits alone, whole lanes.
     */
    take(maxCost: number): Work[] {
      const batch = takeByTurns(turns, maxCost);
      for (const { units } of batch) waiting -= units.length;
      return batch;
    },
    /** Charges accounts what their part of a batch really cost, beyond what they were (`Plan`). */
    charge(batch: Work[], charges: ReadonlyMap<number, number>): void {
      for (const { lane } of batch) lane.charged = 0;
      for (const [accountId, cost] of charges) turns.charge(accountId, cost);
    },
    /** Whether messages of other accounts wait for a transaction. */
    othersWait: turns.othersWait,
    /** Takes back what a batch had no room for: it is the next of its lanes, which are still that batch's. */
    putBack(left: Work[]): void {
      for (const { lane, units } of left) {
        lane.waiting = [...units, ...lane.waiting];
        waiting += units.length;
      }
    },
    /** What waited behind a batch of these lanes may go on. */
    release(batch: Work[]): void {
      for (const { lane } of batch) {
        lane.busy = false;
        markReady(lane);
      }
    },
    /** Gives those of a device's messages that need not wait any more; the others keep their order. */
    takeWithdrawn(deviceId: number): Unit[] {
      const lane = lanes.get(deviceId);
      const gone = lane?.waiting.filter(isWithdrawn) ?? [];
      if (!lane || gone.length === 0) return gone;
      lane.waiting = lane.waiting.filter((unit) => !isWithdrawn(unit));
      waiting -= gone.length;
      if (lane.ready && lane.waiting.length === 0) {
        lane.ready = false;
        turns.remove(lane);
      }
      return gone;
    },
    /** Makes the next batch read the device's context again. */
    forget(deviceId?: number): void {
      if (deviceId === undefined) for (const lane of lanes.values()) lane.context = null;
      else {
        const lane = lanes.get(deviceId);
        if (lane) lane.context = null;
      }
    },
    hasReady: () => turns.size() > 0,
    countWaiting: () => waiting,
    *waiting(): Generator<Unit> {
      for (const lane of lanes.values()) yield* lane.waiting;
    },
  };
}
