import type { Bus, PresentDevice } from '../bus/bus.ts';
import { presenceOf } from '../contract/values.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';
import type { Reach } from '../streams/reach.ts';
import { invalidLastEventId, type OpenSource } from '../streams/schema.ts';
import { stillHere, type StreamPiece, writeMessage } from '../streams/server-sent.ts';
import { Subscriber, type SubscriberBudget } from '../streams/subscriber.ts';

/** Devices of one account that are named in one turn; of more readers are told to ask again. */
const maxNamed = 100;

/** Of a turn: devices as they are now, or why a reader is to ask again. */
type PresenceBatch = { devices: PresentDevice[] } | { reason: AskAgain };

/** Why any device may have changed; of several the last of them is told. */
const reasons = ['changed', 'many', 'missed'] as const;
type AskAgain = (typeof reasons)[number];

/** What changed since the last turn: of a device that came and left meanwhile, how it stands now. */
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

  /** Any of them may have changed. */
  addAll(reason: AskAgain): void {
    const before = this.#reason;
    const isMore = before === null || reasons.indexOf(reason) > reasons.indexOf(before);
    if (isMore) this.#reason = reason;
    this.#devices.clear();
  }

  /** What there is; nothing is left. */
  take(): PresenceBatch {
    const turn: PresenceBatch =
      this.#reason === null ? { devices: [...this.#devices.values()] } : { reason: this.#reason };
    this.#reason = null;
    this.#devices = new Map();
    return turn;
  }
}

type AccountPresenceOptions = {
  monotonicClock: MonotonicClock;
  /** Of all streams. */
  budget: SubscriberBudget;
  /** No stream is silent for longer. */
  heartbeatMs: number;
  write: WritePresence;
  /** The last stream has left. */
  onEnd: () => void;
};

type Joined = { subscriber: Subscriber<string>; leave: () => void };

/** Between two turns. After one that told to ask again there is more time: answers cost more than turns. */
const pauseMs = 1_000;
const pauseAfterAllMs = 2_000;

/** Tells the streams of one account who connected and left: at once after a pause, and then in turns. */
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

  /** Null: any may have changed. */
  hear(devices: readonly PresentDevice[] | null): void {
    if (devices) this.#changes.add(devices);
    else this.#changes.addAll('many');
    this.#schedule();
  }

  /** Devices were added, removed, labelled or configured anew. */
  change(): void {
    this.#changes.addAll('changed');
    this.#schedule();
  }

  /** Something may not have been heard. */
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
    const turn = this.#changes.take();
    this.#nextMs = monotonicMs + ('devices' in turn ? pauseMs : pauseAfterAllMs);
    const written = new Map<string, Buffer>();
    for (const [subscriber, reach] of this.#subscribers) {
      const bytes = written.get(reach.key) ?? this.#options.write(turn, reach);
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
 * Where a reader is, whatever it has read: who was there a moment ago is written nowhere, so that one that comes
 * back is told to ask again.
 */
const position = '1';

const writeAskAgain = (reason: AskAgain): Buffer =>
  Buffer.from(writeMessage('devices', JSON.stringify({ reason })));

/** The messages of a turn about the devices of `reach`, as of `StreamPiece`; empty where there is none. */
type WritePresence = (turn: PresenceBatch, reach: Pick<Reach, 'has'>) => Buffer;

/** `isIntermittent`: of a connector, as of `Presence`. */
function createWritePresence(isIntermittent: (connectorId: number) => boolean): WritePresence {
  return (turn, reach) => {
    if ('reason' in turn) return writeAskAgain(turn.reason);
    const messages = turn.devices
      .filter(({ deviceId }) => reach.has(deviceId))
      .map(({ uuid, connected, connectorId, seenTs }) => {
        const presence = presenceOf(connected, isIntermittent(connectorId));
        const told = { deviceAuthUuid: uuid, presence, lastSeenTs: seenTs };
        return writeMessage('device', JSON.stringify(told));
      });
    return Buffer.from(messages.join('\n'));
  };
}

type PresenceSourceDeps = {
  bus: Bus;
  heartbeatMs: number;
  monotonicClock: MonotonicClock;
  /** Of all streams. */
  budget: SubscriberBudget;
  /** Of a connector, as of `Presence`. */
  isIntermittent: (connectorId: number) => boolean;
};

/** Who connects and leaves, as it is written, and that the list of devices changed. Hears nothing while there is no stream. */
export function createPresenceSource(deps: PresenceSourceDeps): OpenSource {
  const { bus } = deps;
  const byAccount = new Map<number, AccountPresence>();
  const write = createWritePresence(deps.isIntermittent);
  let ends: (() => void)[] = [];

  const listen = (): void => {
    ends = [
      bus.subscribe('presence', ({ accounts }) => {
        for (const { accountId, devices } of accounts) byAccount.get(accountId)?.hear(devices);
      }),
      bus.subscribe('fleet', ({ accountId }) => byAccount.get(accountId)?.change()),
      // Which devices a filter lets through changed, too.
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
