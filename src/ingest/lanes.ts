import { append } from '../core/append.ts';
import type { DeviceIdentity, UplinkContent } from '../core/uplink.ts';
import type { DeviceContext } from './context.ts';
import type { Unit } from './entry.ts';
import { costPerItem } from './weight.ts';
import { isWithdrawn } from './withdrawn.ts';

/**
 * One device's messages in the order of their arrival. Two transactions share a lane only where one has
 * begun behind the commit of the other.
 */
export type Lane = {
  device: DeviceIdentity;
  waiting: Unit[];
  busy: boolean;
  ready: boolean;
  /** As of the last commit, or the one under way; null when it must be read (again). */
  context: DeviceContext | null;
  /** Last `ts` given to a measurement that came without one, by sense: two of them are two. */
  lastArrival: Map<string, number> | null;
};

export type Work = { lane: Lane; units: Unit[] };

/** How many items a unit brings into a batch. */
export function sizeOf(content: UplinkContent): number {
  return 'items' in content ? Math.max(1, content.items.length) : 1;
}

export type Lanes = ReturnType<typeof createLanes>;

/** `maxIdle`: how many devices without waiting messages are remembered (least recently used go first). */
export function createLanes(maxIdle: number) {
  /** The least recently used one first. */
  const lanes = new Map<number, Lane>();
  let newest: Lane | undefined;
  const ready: Lane[] = [];
  let waiting = 0;

  function laneOf(device: DeviceIdentity): Lane {
    const { deviceId } = device;
    const known = lanes.get(deviceId);
    if (known && known === newest) return known;
    if (known) lanes.delete(deviceId);
    const context = null;
    const lane = (newest = known ?? {
      device,
      waiting: [],
      busy: false,
      ready: false,
      context,
      lastArrival: null,
    });
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
    ready.push(lane);
  }

  return {
    laneOf,
    add(lane: Lane, unit: Unit): void {
      lane.waiting = append(lane.waiting, unit);
      waiting += 1;
      markReady(lane);
    },
    /** The next batch: whole lanes, in the order in which they became ready, up to about `maxCost` (`costPerItem`). */
    take(maxCost: number): Work[] {
      const batch: Work[] = [];
      let cost = 0;
      let taken = 0;
      while (taken < ready.length && cost < maxCost) {
        const lane = ready[taken++] as Lane;
        lane.ready = false;
        lane.busy = true;
        const perItem = costPerItem(lane.context);
        const units = takeUnits(lane, (maxCost - cost) / perItem);
        for (const unit of units) cost += sizeOf(unit.content) * perItem;
        waiting -= units.length;
        batch.push({ lane, units });
      }
      ready.splice(0, taken);
      return batch;
    },
    /** What waited behind a batch of these lanes may go on. */
    /** Takes back what a batch had no room for: it is the next of its lanes, which are still that batch's. */
    putBack(left: Work[]): void {
      for (const { lane, units } of left) {
        lane.waiting = [...units, ...lane.waiting];
        waiting += units.length;
      }
    },
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
        ready.splice(ready.indexOf(lane), 1);
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
    hasReady: () => ready.length > 0,
    countWaiting: () => waiting,
    *waiting(): Generator<Unit> {
      for (const lane of lanes.values()) yield* lane.waiting;
    },
  };
}

function takeUnits(lane: Lane, room: number): Unit[] {
  let items = 0;
  let count = 0;
  while (count < lane.waiting.length && (count === 0 || items < room)) {
    items += sizeOf((lane.waiting[count++] as Unit).content);
  }
  if (count < lane.waiting.length) return lane.waiting.splice(0, count);
  const all = lane.waiting;
  lane.waiting = [];
  return all;
}
