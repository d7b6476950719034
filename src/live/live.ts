import { setTimeout as delay } from 'node:timers/promises';
import type { Bus, LiveDevice } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';
import { WakeableRest } from '../lib/wait.ts';
import { type StreamPosition, writePosition } from '../streams/position.ts';
import { invalidLastEventId, type OpenSource } from '../streams/schema.ts';
import { stillHere, type StreamPiece, writeMessage } from '../streams/server-sent.ts';
import {
  createSlices,
  type DropReason,
  Subscriber,
  readFairly,
  type ReadFairly,
  type NextSlice,
  type SubscriberBudget,
} from '../streams/subscriber.ts';
import { replayValues, startOf } from './replay.ts';
import { Group, type LiveFilter, underWayMs } from './group.ts';
import { createAnnouncer } from './listeners.ts';
import {
  createPositions,
  type LivePosition,
  parseLivePosition,
  type Positions,
  type ReadPosition,
  toBytes,
  Value,
  writeLivePosition,
} from './value.ts';

type ValueSourceDeps = {
  db: Sql;
  broadcaster: LiveBroadcaster;
  exports: ReadFairly;
};

/** Measurements as they are committed. */
export function createValueSource(deps: ValueSourceDeps): OpenSource {
  return async ({ reach, senses, maxHz, from: id }) => {
    const from = id === null ? null : parseLivePosition(id);
    if (id !== null && !from) throw invalidLastEventId();
    const filter = { reach, senses, maxHz };
    const joined = await deps.broadcaster.join(filter);
    return {
      leave: joined.leave,
      pieces: () => writeSource(deps, filter, joined, from),
    };
  };
}

async function* writeSource(
  { db, exports }: ValueSourceDeps,
  filter: LiveFilter,
  { subscriber, position: present }: Joined,
  from: LivePosition | null,
): AsyncGenerator<StreamPiece<string>> {
  let position = from ? writeLivePosition(from) : writePosition(present);
  yield { bytes: Buffer.from(writeOpened(from, present)), position };
  if (from) {
    const sql = readFairly(exports, filter.reach.accountId, db);
    for await (const values of replayValues({ sql, filter, from, present })) {
      // The replay is not ordered by time, so a reader that disconnects midway starts over.
      for (const bytes of toBytes(values)) yield { bytes, position };
      if (subscriber.hasEnded) break;
    }
    position = writePosition(present);
    yield { bytes: Buffer.from(stillHere), position };
  }
  for await (const piece of subscriber.read()) {
    ({ position } = piece);
    yield piece;
  }
  if (subscriber.reason === null) return;
  const why = writeMessage('dropped', JSON.stringify({ reason: subscriber.reason }));
  yield { bytes: Buffer.from(why), position };
}

function writeOpened(from: LivePosition | null, present: Joined['position']): string {
  const opened = from
    ? {
        timestamp: present.ts,
        resumed: true,
        start: startOf(from, present),
        late: 'in-history-only',
      }
    : { timestamp: present.ts, resumed: false };
  return writeMessage('opened', JSON.stringify(opened));
}

type LiveBroadcasterOptions = {
  db: Sql;
  bus: Bus;
  /** The name of this process; no other has it. */
  process: string;
  heartbeatMs: number;
  monotonicClock: MonotonicClock;
  /** Shared by all streams. */
  budget: SubscriberBudget;
  /** A position could not be read. Ids then stay behind, and a reader that resumes is sent more values again. */
  onError: (error: unknown) => void;
};

/** All streams of values in this process, by account. */
type LiveBroadcaster = {
  /** The subscriber receives what any process commits from then on. */
  join(filter: LiveFilter): Promise<Joined>;
};

/** The longest period of a stream: that of the smallest `maxHz`. */
const longestPeriodMs = 10_000;

/** Listens to the bus and queries the database only while there are streams. */
export function createLiveBroadcaster(options: LiveBroadcasterOptions): LiveBroadcaster {
  const { db, bus, monotonicClock, onError } = options;
  const byAccount = new Map<number, AccountValues>();
  const announcer = createAnnouncer(options);
  const positions = createPositions(db, monotonicClock, longestPeriodMs + 2 * underWayMs);
  const slicesOf = createSlices();
  const waiting = { values: 0 };
  let ends: (() => void)[] = [];

  const listen = (): void => {
    ends = [
      bus.subscribe('measurements', ({ accountId, devices }) =>
        byAccount.get(accountId)?.add(devices),
      ),
      bus.subscribe('resync', () => {
        for (const ofAccount of byAccount.values()) ofAccount.drop('interrupted');
      }),
      positions.follow(onError),
    ];
  };
  const open = (accountId: number): AccountValues => {
    if (byAccount.size === 0) listen();
    const onEnd = () => {
      byAccount.delete(accountId);
      announcer.delete(accountId);
      if (byAccount.size === 0) for (const end of ends) end();
    };
    const nextSlice = slicesOf(accountId);
    const ofAccount = new AccountValues({ ...options, positions, nextSlice, waiting, onEnd });
    byAccount.set(accountId, ofAccount);
    announcer.add(accountId);
    return ofAccount;
  };

  return {
    join(filter) {
      const { accountId } = filter.reach;
      const ofAccount = byAccount.get(accountId) ?? open(accountId);
      return ofAccount.join(filter, positions.read());
    },
  };
}

type AccountValuesOptions = {
  positions: Positions;
  nextSlice: NextSlice;
  monotonicClock: MonotonicClock;
  /** Shared by all streams. */
  budget: SubscriberBudget;
  /** No stream is silent for longer. */
  heartbeatMs: number;
  /** Values that wait in this process. */
  waiting: { values: number };
  /** Called when the last stream has left. */
  onEnd: () => void;
};

type Joined = {
  subscriber: Subscriber<string>;
  /** What was committed when it joined. */
  position: StreamPosition;
  leave: () => void;
};

/** How many values are handled before the event loop does other work: about a millisecond for each group. */
const valuesPerTurn = 500;
/** The shortest time between two writes to an account's streams. With many streams, writes become fewer. */
const pauseMs = 5;
const streamsPerPauseMs = 4;

/** Passes the values of one account to its streams. */
class AccountValues {
  readonly #options: AccountValuesOptions;
  readonly #groups = new Map<string, Group>();
  readonly #backlog: Backlog;
  /** Streams that are about to join. */
  #joining = 0;
  #isRunning = false;
  #hasEnded = false;
  #beatMs: number;
  readonly #rest = new WakeableRest();

  constructor(options: AccountValuesOptions) {
    this.#options = options;
    this.#backlog = new Backlog(options.waiting);
    this.#beatMs = options.monotonicClock();
  }

  /**
   * Adds a stream once the position is read. It receives values from then on; those between the read and then
   * come twice.
   */
  async join(filter: LiveFilter, read: Promise<ReadPosition>): Promise<Joined> {
    this.#joining += 1;
    try {
      const first = await read;
      const group = this.#groupOf(filter, first);
      const subscriber = new Subscriber<string>(
        '',
        this.#options.monotonicClock(),
        this.#options.budget,
      );
      group.subscribers.add(subscriber);
      if (!this.#isRunning) void this.#run();
      return { subscriber, position: first.position, leave: () => this.#leave(group, subscriber) };
    } finally {
      this.#joining -= 1;
      this.#endUnlessUsed();
    }
  }

  /** Takes committed values, in the order of their commits. */
  add(devices: LiveDevice[]): void {
    const isTaken = this.#backlog.add(devices, this.#options.monotonicClock());
    if (isTaken) this.#rest.wake();
    else this.drop('overloaded');
  }

  /** Ends all streams. Each can resume where it was. */
  drop(reason: DropReason): void {
    this.#backlog.clear();
    for (const { subscribers } of this.#groups.values())
      for (const subscriber of subscribers) subscriber.drop(reason);
  }

  #groupOf(filter: LiveFilter, first: ReadPosition): Group {
    const key = JSON.stringify([filter.reach.key, filter.senses?.toSorted(), filter.maxHz]);
    const group = this.#groups.get(key) ?? new Group(key, filter, this.#options.positions, first);
    this.#groups.set(key, group);
    return group;
  }

  #leave(group: Group, subscriber: Subscriber<string>): void {
    subscriber.leave();
    if (!group.subscribers.delete(subscriber) || group.subscribers.size > 0) return;
    if (this.#groups.get(group.key) === group) this.#groups.delete(group.key);
    this.#endUnlessUsed();
  }

  #endUnlessUsed(): void {
    if (this.#groups.size > 0 || this.#joining > 0 || this.#hasEnded) return;
    this.#hasEnded = true;
    this.#backlog.clear();
    this.#options.onEnd();
    this.#rest.wake();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      await this.#serveAll();
    } catch (cause) {
      const error =
        cause instanceof Error ? cause : new Error('A stream was interrupted.', { cause });
      for (const { subscribers } of this.#groups.values())
        for (const subscriber of subscribers) subscriber.end(error);
    } finally {
      this.#isRunning = false;
    }
  }

  async #serveAll(): Promise<void> {
    const { monotonicClock } = this.#options;
    while (this.#groups.size > 0) {
      this.#rest.begin();
      const heardMs = this.#backlog.oldestMs ?? monotonicClock();
      const values = this.#backlog.take(valuesPerTurn);
      for (const group of this.#groups.values()) await this.#serve(group, values, heardMs);
      await this.#beat();
      if (!this.#backlog.isEmpty) continue;
      await delay(pauseMs + this.#count() / streamsPerPauseMs);
      if (this.#groups.size > 0) await this.#rest.rest(this.#restMs());
    }
  }

  async #serve(group: Group, values: Value[], heardMs: number): Promise<void> {
    const { nextSlice, monotonicClock } = this.#options;
    const monotonicMs = monotonicClock();
    let next = group.throttle?.takeDue(monotonicMs, valuesPerTurn) ?? [];
    do {
      if (next.length > 0) await this.#give(group, next, heardMs);
      next = group.throttle?.takeDue(monotonicMs, valuesPerTurn) ?? [];
    } while (next.length > 0);
    if (values.length === 0) return;
    await nextSlice();
    const chosen = group.choose(values, monotonicMs);
    if (chosen.length > 0) await this.#give(group, chosen, heardMs);
  }

  async #give(group: Group, values: Value[], heardMs: number): Promise<void> {
    await this.#options.nextSlice();
    const monotonicMs = this.#options.monotonicClock();
    for (const piece of group.write(values, heardMs, monotonicMs))
      for (const subscriber of group.subscribers) subscriber.give(piece, monotonicMs);
  }

  /** Runs twice in `heartbeatMs`, for streams that were sent nothing since the last time. */
  async #beat(): Promise<void> {
    const everyMs = this.#options.heartbeatMs / 2;
    const monotonicMs = this.#options.monotonicClock();
    if (monotonicMs - this.#beatMs < everyMs) return;
    this.#beatMs = monotonicMs;
    await this.#options.nextSlice();
    for (const group of this.#groups.values()) {
      const piece = { bytes: Buffer.from(stillHere), position: group.position(monotonicMs) };
      for (const subscriber of group.subscribers)
        if (monotonicMs - subscriber.givenMs >= everyMs) subscriber.give(piece, monotonicMs);
    }
  }

  /** The time until a value is due or the next heartbeat. */
  #restMs(): number {
    const dueMs = [...this.#groups.values()].map(({ throttle }) => throttle?.nextMs ?? Infinity);
    const nextMs = Math.min(this.#beatMs + this.#options.heartbeatMs / 2, ...dueMs);
    return nextMs - this.#options.monotonicClock();
  }

  #count(): number {
    let count = 0;
    for (const { subscribers } of this.#groups.values()) count += subscribers.size;
    return count;
  }
}

type Heard = { devices: LiveDevice[]; count: number; heardMs: number };

/** Of one account: about 20 MB. More values wait only if they come faster than streams can be written. */
const maxValues = 100_000;
const maxOfAll = 500_000;

/** The values that an account's streams have still to receive. `all` counts the values of all accounts. */
class Backlog {
  readonly #all: { values: number };
  #heard: Heard[] = [];
  #values = 0;

  constructor(all: { values: number }) {
    this.#all = all;
  }

  get isEmpty(): boolean {
    return this.#heard.length === 0;
  }

  /** When the oldest waiting value was heard; undefined if none waits. */
  get oldestMs(): number | undefined {
    return this.#heard[0]?.heardMs;
  }

  /** False if there is no space for them. */
  add(devices: LiveDevice[], heardMs: number): boolean {
    const count = devices.reduce((sum, { values }) => sum + values.length, 0);
    if (this.#values + count > maxValues || this.#all.values + count > maxOfAll) return false;
    this.#count(count);
    this.#heard.push({ devices, count, heardMs });
    return true;
  }

  /** Takes the oldest messages, until they hold `limit` values. */
  take(limit: number): Value[] {
    const values: Value[] = [];
    while (values.length < limit) {
      const heard = this.#heard.shift();
      if (!heard) break;
      this.#count(-heard.count);
      for (const device of heard.devices)
        for (const value of device.values) values.push(new Value(device, value));
    }
    return values;
  }

  clear(): void {
    this.#heard = [];
    this.#count(-this.#values);
  }

  #count(values: number): void {
    this.#values += values;
    this.#all.values += values;
  }
}
