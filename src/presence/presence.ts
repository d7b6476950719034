import type { Bus, PresentDevice } from '../bus/bus.ts';
import { presenceOf } from '../contract/values.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';
import type { Reach } from '../streams/reach.ts';
import { invalidLastEventId, type OpenSource } from '../streams/schema.ts';
import { stillHere, type StreamPiece, writeMessage } from '../streams/server-sent.ts';
import { Subscriber, type SubscriberBudget } from '../streams/subscriber.ts';

/** The most devices that one batch names. If more changed, readers are told to request the list again. */
const maxNamed = 100;

/** Devices as they are now, or why a reader should request the list again. */
type PresenceBatch = { devices: PresentDevice[] } | { reason: AskAgain };

/** Why any device may have changed. If several apply, the last one here is sent. */
const reasons = ['changed', 'many', 'missed'] as const;
type AskAgain = (typeof reasons)[number];

/** What changed since the last batch. A device that left and returned counts as it is now. */
class PresenceChanges {
  #devices = new Map<number, PresentDevice>();
  #reason: AskAgain | null = null;

  get isEmpty(): boolean {
    return this.#reason === null && this.#devices.size === 0;
  }

  add(devices: readonly PresentDevice[]): void {
    for (const device of devices) this.#devices.set(device.deviceId, device);
    if (this.#devices.size > maxNamed) this.addAll('many');
  }

  /** Any device may have changed. */
  addAll(reason: AskAgain): void {
    const before = this.#reason;
    const isMore = before === null || reasons.indexOf(reason) > reasons.indexOf(before);
    if (isMore) this.#reason = reason;
    this.#devices.clear();
  }

  /** Takes all changes. */
  take(): PresenceBatch {
    const batch: PresenceBatch =
      this.#reason === null ? { devices: [...this.#devices.values()] } : { reason: this.#reason };
    this.#reason = null;
    this.#devices = new Map();
    return batch;
  }
}

type AccountPresenceOptions = {
  monotonicClock: MonotonicClock;
  /** Shared by all streams. */
  budget: SubscriberBudget;
  /** No stream is silent for longer. */
  heartbeatMs: number;
  write: WritePresence;
  /** Called when the last stream has left. */
  onEnd: () => void;
};

type Joined = { subscriber: Subscriber<string>; leave: () => void };

/** The pause between two batches. It is longer after a request to list again: those answers cost more. */
const pauseMs = 1_000;
const pauseAfterAllMs = 2_000;

/** Sends presence changes to the streams of one account: the first after a pause at once, then in batches. */
class AccountPresence {
  readonly #options: AccountPresenceOptions;
  readonly #subscribers = new Map<Subscriber<string>, Reach>();
  readonly #changes = new PresenceChanges();
  readonly #beating: NodeJS.Timeout;
  #timer: NodeJS.Timeout | undefined;
  #nextMs = -Infinity;

  constructor(options: AccountPresenceOptions) {
    this.#options = options;
    this.#beating = setInterval(() => this.#beat(), options.heartbeatMs / 2);
    this.#beating.unref();
  }

  join(reach: Reach): Joined {
    const subscriber = new Subscriber(
      position,
      this.#options.monotonicClock(),
      this.#options.budget,
    );
    this.#subscribers.set(subscriber, reach);
    return { subscriber, leave: () => this.#leave(subscriber) };
  }

  /** Null: any device may have changed. */
  add(devices: readonly PresentDevice[] | null): void {
    if (devices) this.#changes.add(devices);
    else this.#changes.addAll('many');
    this.#schedule();
  }

  /** Devices were added, removed, labelled or reconfigured. */
  change(): void {
    this.#changes.addAll('changed');
    this.#schedule();
  }

  /** Messages may have been missed. */
  miss(): void {
    this.#changes.addAll('missed');
    this.#schedule();
  }

  #schedule(): void {
    if (this.#timer || this.#subscribers.size === 0) return;
    const waitMs = Math.max(0, this.#nextMs - this.#options.monotonicClock());
    this.#timer = setTimeout(() => this.#tell(), waitMs);
  }

  #tell(): void {
    this.#timer = undefined;
    const monotonicMs = this.#options.monotonicClock();
    const batch = this.#changes.take();
    this.#nextMs = monotonicMs + ('devices' in batch ? pauseMs : pauseAfterAllMs);
    const written = new Map<string, Buffer>();
    for (const [subscriber, reach] of this.#subscribers) {
      const bytes = written.get(reach.key) ?? this.#options.write(batch, reach);
      written.set(reach.key, bytes);
      if (bytes.length > 0) subscriber.give({ bytes, position }, monotonicMs);
    }
  }

  #beat(): void {
    const monotonicMs = this.#options.monotonicClock();
    const piece = { bytes: Buffer.from(stillHere), position };
    for (const subscriber of this.#subscribers.keys())
      if (monotonicMs - subscriber.givenMs >= this.#options.heartbeatMs / 2)
        subscriber.give(piece, monotonicMs);
  }

  #leave(subscriber: Subscriber<string>): void {
    subscriber.leave();
    if (!this.#subscribers.delete(subscriber) || this.#subscribers.size > 0) return;
    clearInterval(this.#beating);
    clearTimeout(this.#timer);
    this.#options.onEnd();
  }
}

/**
 * Every reader's position, whatever it has read. Past presence is not stored, so a reader that returns is told to
 * request the list again.
 */
const position = '1';

const writeAskAgain = (reason: AskAgain): Buffer =>
  Buffer.from(writeMessage('devices', JSON.stringify({ reason })));

/** Writes a batch for the devices of `reach`, as for `StreamPiece`; empty if it has none of them. */
type WritePresence = (batch: PresenceBatch, reach: Pick<Reach, 'has'>) => Buffer;

/** `isIntermittent`: whether a connector is, as in `Presence`. */
function createWritePresence(isIntermittent: (connectorId: number) => boolean): WritePresence {
  return (batch, reach) => {
    if ('reason' in batch) return writeAskAgain(batch.reason);
    const messages = batch.devices
      .filter(({ deviceId }) => reach.has(deviceId))
      .map(({ uuid, connected, connectorId, seenTs }) => {
        const presence = presenceOf(connected, isIntermittent(connectorId));
        const change = { deviceAuthUuid: uuid, presence, lastSeenTs: seenTs };
        return writeMessage('device', JSON.stringify(change));
      });
    return Buffer.from(messages.join('\n'));
  };
}

type PresenceSourceDeps = {
  bus: Bus;
  heartbeatMs: number;
  monotonicClock: MonotonicClock;
  /** Shared by all streams. */
  budget: SubscriberBudget;
  /** Whether a connector is, as in `Presence`. */
  isIntermittent: (connectorId: number) => boolean;
};

/** Streams presence as it is stored, and changes to the list of devices. Listens only while there are streams. */
export function createPresenceSource(deps: PresenceSourceDeps): OpenSource {
  const { bus } = deps;
  const byAccount = new Map<number, AccountPresence>();
  const write = createWritePresence(deps.isIntermittent);
  let ends: (() => void)[] = [];

  const listen = (): void => {
    ends = [
      bus.subscribe('presence', ({ accounts }) => {
        for (const { accountId, devices } of accounts) byAccount.get(accountId)?.add(devices);
      }),
      bus.subscribe('fleet', ({ accountId }) => byAccount.get(accountId)?.change()),
      // The devices that a filter selects changed, too.
      bus.subscribe('labels', ({ accountId }) => byAccount.get(accountId)?.change()),
      bus.subscribe('resync', () => {
        for (const ofAccount of byAccount.values()) ofAccount.miss();
      }),
    ];
  };
  const open = (accountId: number): AccountPresence => {
    if (byAccount.size === 0) listen();
    const onEnd = () => {
      byAccount.delete(accountId);
      if (byAccount.size === 0) for (const end of ends) end();
    };
    const ofAccount = new AccountPresence({ ...deps, write, onEnd });
    byAccount.set(accountId, ofAccount);
    return ofAccount;
  };

  return async ({ reach, from }) => {
    if (from !== null && from !== position) throw invalidLastEventId();
    const ofAccount = byAccount.get(reach.accountId) ?? open(reach.accountId);
    const { subscriber, leave } = ofAccount.join(reach);
    return { leave, pieces: () => read(subscriber, from !== null) };
  };
}

async function* read(
  subscriber: Subscriber<string>,
  isResumed: boolean,
): AsyncGenerator<StreamPiece<string>> {
  const first = isResumed ? writeAskAgain('missed') : Buffer.from(stillHere);
  yield { bytes: first, position };
  yield* subscriber.read();
  if (subscriber.reason === null) return;
  const why = writeMessage('dropped', JSON.stringify({ reason: subscriber.reason }));
  yield { bytes: Buffer.from(why), position };
}
