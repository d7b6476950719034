import type { Delivery, DeviceIdentity } from '../../contract/uplink.ts';
import { DomainError } from '../../errors.ts';
import type { TickObserver, TickPace } from './pace.ts';
import type { DueDevice } from './queries.ts';

export type TickFeedDeps = {
  /** Milliseconds that only go forward. */
  nowMs: () => number;
  tick(device: DeviceIdentity, delivery: Delivery): void;
  observe?: Pick<TickObserver, 'done'> | undefined;
};

/** What is due, on its way into ingest a few at a time. */
export type TickFeed = {
  /** What is read from now on is for the next `add`. */
  beginLook(): void;
  /** Takes in those that it does not have yet, nor had when they were read; gives how many. */
  add(devices: DueDevice[]): number;
  /** Resolves when few wait. */
  whenLow(): Promise<void>;
  /** Brings no more. */
  stop(): void;
};

export function createTickFeed(
  { maxUnderWay, perSecond, portionMs, atOnce }: TickPace,
  { nowMs, tick, observe }: TickFeedDeps,
  putOff: (device: DueDevice, error: unknown) => Promise<void>,
): TickFeed {
  let waiting: DueDevice[] = [];
  let at = 0;
  /** Those that wait, and those under way. */
  const known = new Set<number>();
  /** Those that ended since what is read now began to be read: there they may still be due. */
  let ended = new Set<number>();
  let underWay = 0;
  let credit = maxUnderWay;
  let creditMs = nowMs();
  let timer: NodeJS.Timeout | undefined;
  let onLow = () => {};
  let isStopped = false;

  const left = () => waiting.length - at;
  const isLow = () => isStopped || left() < atOnce / 4;

  function earn(): void {
    const now = nowMs();
    credit = Math.min(maxUnderWay, credit + ((now - creditMs) * perSecond) / 1_000);
    creditMs = now;
  }

  function bring(): void {
    if (isStopped) return;
    earn();
    while (left() > 0 && underWay < maxUnderWay && credit >= 1) {
      credit -= 1;
      underWay += 1;
      const due = waiting[at++] as DueDevice;
      const { deviceId, uuid, accountId, connectorId } = due;
      tick({ deviceId, uuid, accountId, connectorId }, deliveryOf(due));
    }
    if (at > atOnce) {
      waiting = waiting.slice(at);
      at = 0;
    }
    if (isLow()) onLow();
    if (left() > 0) timer ??= setTimeout(onPortion, portionMs).unref();
  }

  function onPortion(): void {
    timer = undefined;
    bring();
  }

  function end(device: DueDevice, outcome: Parameters<TickObserver['done']>[0]): void {
    known.delete(device.deviceId);
    ended.add(device.deviceId);
    underWay -= 1;
    observe?.done(outcome);
  }

  function deliveryOf(device: DueDevice): Delivery {
    return {
      isWithdrawn: false,
      stored: () => end(device, 'stored'),
      failed(error) {
        if (isPassing(error)) end(device, 'left');
        else void putOff(device, error).finally(() => end(device, 'put-off'));
      },
    };
  }

  return {
    beginLook: () => void (ended = new Set()),
    add(devices) {
      let added = 0;
      for (const device of devices) {
        if (known.has(device.deviceId) || ended.has(device.deviceId)) continue;
        known.add(device.deviceId);
        waiting.push(device);
        added += 1;
      }
      bring();
      return added;
    },
    whenLow() {
      return new Promise((resolve) => {
        onLow = resolve;
        if (isLow()) resolve();
      });
    },
    stop() {
      isStopped = true;
      clearTimeout(timer);
      onLow();
    },
  };
}

/** Whether it is tried again with the next look: the database is away, or somebody else has the device. */
function isPassing(error: unknown): boolean {
  return error instanceof DomainError && ['unavailable', 'device-gone'].includes(error.code);
}
