import { setTimeout as sleep } from 'node:timers/promises';
import type { Delivery, DeviceIdentity, Uplink } from '../core/uplink.ts';
import type { Database } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import { Entry } from './entry.ts';
import { createFollowUp } from './follow-up.ts';
import type { FollowUpDeps } from './follow-up.ts';
import { createLanes } from './lanes.ts';
import type { Work } from './lanes.ts';
import { createContextLoader } from './load-contexts.ts';
import { createRepeats } from './repeats.ts';
import type { ApplyLimits } from './scope.ts';
import { settleBatch } from './settle.ts';
import type { Ahead, Turn } from './settle.ts';
import { stampArrivals } from './stamp-arrivals.ts';
import { failWithdrawn } from './withdrawn.ts';
import type { Writers } from './write.ts';

export type IngestOptions = {
  limits: ApplyLimits;
  /** Transactions beside each other, at most; one more may begin behind another's commit. */
  maxInFlight: number;
  /**
   * What makes another transaction worth its while beside one that is under way: so many messages that
   * wait, or that one taking so long. Few and large ones cost less than many small ones.
   */
  anotherAtMessages: number;
  anotherAfterMs: number;
  /** Items in one transaction, about. */
  maxBatchItems: number;
  /** Devices whose context is remembered while they are silent. */
  maxRememberedDevices: number;
};

export type IngestDeps = FollowUpDeps & { db: Database; writers: Writers };

export type Ingest = {
  /** Stores the message, after those of the device that came before it, and tells `delivery`. */
  ingest(device: DeviceIdentity, uplink: Uplink, delivery: Delivery): void;
  /** Those of its messages that were withdrawn, and that no transaction holds, fail now. */
  withdraw(device: DeviceIdentity): void;
  /** Messages that are not committed yet. */
  depth(): number;
  /** Stores what is under way, for at most `drainMs`. */
  close(drainMs: number): Promise<void>;
};

/** The way of every device message from its connector into the database. */
export function startIngest(options: IngestOptions, deps: IngestDeps): Ingest {
  const lanes = createLanes(options.maxRememberedDevices);
  const loadContexts = createContextLoader();
  const repeats = createRepeats();
  const onCommitted = createFollowUp(deps);
  const stopping = new AbortController();
  let inFlight = 0;
  /** The one among them whose lanes have gone on: what follows is planned on top of it. */
  let ahead: Ahead | null = null;
  /** Messages in the transactions under way. */
  let carried = 0;
  let scheduled = false;
  /** The newest transaction takes long: what waits behind it goes on beside it. */
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    pump();
  }, options.anotherAfterMs).unref();
  let idle = () => {};

  const unsubscribe = [
    deps.bus.subscribe('device', ({ deviceId }) => lanes.forget(deviceId)),
    deps.bus.subscribe('access', ({ deviceId }) => lanes.forget(deviceId)),
    deps.bus.subscribe('resync', () => lanes.forget()),
  ];

  function ingest(device: DeviceIdentity, uplink: Uplink, delivery: Delivery): void {
    const lane = lanes.laneOf(device);
    const content = stampArrivals(uplink, lane);
    const entry = new Entry(uplink, delivery);
    lanes.add(lane, { entry, content, rejections: uplink.rejections });
    schedule();
  }

  /** All that one turn of the event loop brings shares a transaction. */
  function schedule(): void {
    if (scheduled || !isWorthAnother()) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      pump();
    });
  }

  function isWorthAnother(): boolean {
    // One behind it: of two, beside each other, nothing would keep the second one behind it.
    if (ahead) return inFlight === 1;
    if (inFlight === 0) return true;
    if (inFlight >= options.maxInFlight) return false;
    return isLate || lanes.countWaiting() >= options.anotherAtMessages;
  }

  function pump(): void {
    while (lanes.hasReady() && isWorthAnother() && !stopping.signal.aborted) {
      isLate = false;
      late.refresh();
      carry(lanes.take(options.maxBatchItems));
    }
  }

  function carry(batch: Work[]): void {
    inFlight += 1;
    let own: Ahead | null = null;
    const settled: Promise<void> = settle(batch, {
      ahead,
      onCommitting(committing) {
        // Only alone: of two, each would have to be behind the other.
        if (inFlight > 1) return;
        ahead = own = { committing, settled };
        lanes.release(batch);
        pump();
      },
    }).then(() => {
      inFlight -= 1;
      if (own === null) lanes.release(batch);
      else ahead = null;
      pump();
      if (inFlight === 0) idle();
    });
  }

  async function settle(batch: Work[], turn: Turn): Promise<void> {
    const sinceMs = performance.now();
    const messages = batch.reduce((sum, { units }) => sum + units.length, 0);
    const context = { ...deps, limits: options.limits, loadContexts, repeats, onCommitted, pause };
    carried += messages;
    try {
      await settleBatch(batch, context, turn);
    } catch (error) {
      for (const { units } of batch) for (const { entry } of units) entry.fail(error);
    }
    carried -= messages;
    deps.observe?.batch(messages, (performance.now() - sinceMs) / 1_000);
  }

  async function pause(attempt: number): Promise<void> {
    const delayMs = Math.min(1_000, 20 * 2 ** attempt) * (0.5 + Math.random() / 2);
    await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => {
      throw new DomainError('unavailable', 'The service stops before this could be stored.');
    });
  }

  async function close(drainMs: number): Promise<void> {
    const drained = new Promise<void>((resolve) => (idle = resolve));
    const limit = new AbortController();
    if (inFlight > 0 || lanes.hasReady()) {
      pump();
      await Promise.race([
        drained,
        sleep(drainMs, undefined, { signal: limit.signal }).catch(() => {}),
      ]);
    }
    limit.abort();
    stopping.abort();
    clearTimeout(late);
    for (const end of unsubscribe) end();
    const error = new DomainError('unavailable', 'The service stopped before this was stored.');
    for (const { entry } of lanes.waiting()) entry.fail(error);
  }

  const withdraw = ({ deviceId }: DeviceIdentity) => failWithdrawn(lanes.takeWithdrawn(deviceId));

  return { ingest, withdraw, depth: () => lanes.countWaiting() + carried, close };
}
