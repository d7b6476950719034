import { append } from '../core/append.ts';
import type { DeviceIdentity, UplinkContent } from '../core/uplink.ts';
import type { DeviceContext } from './context.ts';
import type { Unit } from './entry.ts';
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
  const lanes = new Map<number, Lane>();
  const ready: Lane[] = [];
  let waiting = 0;

  function laneOf(device: DeviceIdentity): Lane {
    let lane = lanes.get(device.deviceId);
    if (lane) return lane;
    lane = { device, waiting: [], busy: false, ready: false, context: null, lastArrival: null };
    lanes.set(device.deviceId, lane);
    if (lanes.size > maxIdle) evictIdle();
    return lane;
  }

  /** The map is in order of creation; a lane in use goes to its end and is spared. */
  function evictIdle(): void {
    for (const [deviceId, lane] of [...lanes].slice(0, Math.ceil(maxIdle / 100))) {
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
    /** The next batch: whole lanes, in the order in which they became ready, up to about `maxItems`. */
    take(maxItems: number): Work[] {
      const batch: Work[] = [];
      let items = 0;
      let taken = 0;
      while (taken < ready.length && items < maxItems) {
        const lane = ready[taken++] as Lane;
        lane.ready = false;
        lane.busy = true;
        const units = takeUnits(lane, maxItems - items);
        for (const unit of units) items += sizeOf(unit.content);
        waiting -= units.length;
        batch.push({ lane, units });
      }
      ready.splice(0, taken);
      return batch;
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
