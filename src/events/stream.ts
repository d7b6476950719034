import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';
import { WakeableRest } from '../lib/wait.ts';
import { createFairRunner } from '../quotas/quotas.ts';
import {
  parsePosition,
  readPosition,
  type StreamPosition,
  writePosition,
} from '../streams/position.ts';
import { type Reach, type ReaderRights, type RightsDeps, watchRights } from '../streams/reach.ts';
import { type AskedSource, invalidLastEventId, type OpenSource } from '../streams/schema.ts';
import {
  chunkBytes,
  cutOffWhenSlow,
  stillHere,
  type StreamPiece,
  writeMessage,
} from '../streams/server-sent.ts';
import {
  createSlices,
  Subscriber,
  readFairly,
  type ReadFairly,
  type NextSlice,
  type SubscriberBudget,
} from '../streams/subscriber.ts';
import {
  replayEvents,
  type Page,
  type StreamedRow,
  type StreamScope,
  type WalkAlarms,
} from './feed.ts';
import { type EventFilters, isMatch } from './filter.ts';
import { toAlarmChange, toEventView } from './schema.ts';

type EventSourceDeps = {
  db: Sql;
  broadcaster: EventBroadcaster;
  exports: ReadFairly;
  walkAlarms?: WalkAlarms | undefined;
};

type EventReader = Omit<ReaderRights, 'accountId'> & {
  filter: EventFilter;
  /** The header `Last-Event-ID`; empty for a new stream. */
  lastEventId: string;
};

/**
 * Streams what is committed from now on, or since the reader's last position, as server-sent events. Throws
 * `invalid-input` for a `lastEventId` that this service did not write.
 */
export async function openEventStream(
  options: EventSourceDeps &
    RightsDeps & {
      /** How long a reader may leave a chunk unread. */
      patienceMs: number;
    },
  { filter, lastEventId, ...reader }: EventReader,
): Promise<Readable> {
  const from = parseFrom(lastEventId);
  const first = await options.broadcaster.join(filter);
  const write = async function* (): AsyncGenerator<Buffer> {
    const { until, release } = watchRights(options, { ...reader, accountId: filter.accountId });
    try {
      const pieces = followEvents(options, { filter, from, first, until });
      for await (const { bytes } of pieces) yield bytes;
    } finally {
      release();
    }
  };
  const readable = cutOffWhenSlow(write(), options.patienceMs);
  // `close` also comes if the reader disconnects before the first read.
  readable.once('close', first.leave);
  return readable;
}

/** Null for a new stream. Throws `invalid-input`. */
function parseFrom(lastEventId: string): StreamPosition | null {
  if (lastEventId === '') return null;
  const from = parsePosition(lastEventId);
  if (from) return from;
  throw invalidLastEventId();
}

type Following = {
  filter: EventFilter;
  /** Null: from now on. */
  from: StreamPosition | null;
  /** The subscription that is already open. */
  first: Followed;
  until: AbortSignal;
};

/**
 * Yields what the filter takes, until `until` aborts. A reader that falls behind the broadcast catches up with
 * queries of its own, then joins again.
 */
async function* followEvents(
  deps: EventSourceDeps,
  { filter, from, first, until }: Following,
): AsyncGenerator<EventPiece> {
  let followed = first;
  const end = () => followed.leave();
  until.addEventListener('abort', end);
  try {
    let position = from ?? first.subscriber.position;
    // At once, so that the reader has a position before anything happens.
    yield writeBeat(position, filter.hasIds);
    while (!until.aborted) {
      const { position: to } = followed.subscriber;
      yield* readBetween(deps, filter, { from: position, to, until });
      yield* followed.subscriber.read();
      // The reader has read all that was queued for it, and its queue took no more: it resumes from here.
      position = followed.subscriber.position;
      followed.leave();
      if (!until.aborted) followed = await deps.broadcaster.join(filter);
    }
  } finally {
    until.removeEventListener('abort', end);
    followed.leave();
  }
}

type Between = { from: StreamPosition; to: StreamPosition; until: AbortSignal };

/** Reads what a single reader has missed. The account's readers take turns. */
async function* readBetween(
  { db, broadcaster, exports, walkAlarms }: EventSourceDeps,
  filter: EventFilter,
  { from, to, until }: Between,
): AsyncGenerator<EventPiece> {
  if (from === to) return;
  const { accountId } = filter;
  // Long after its last position, a reader's replay scans all its events, so its pages wait like an export's.
  const archiveSql = readFairly(exports, accountId, db);
  const pages = replayEvents(db, filter, from, to, {
    sql: archiveSql,
    ...(walkAlarms && { walkAlarms }),
  });
  for (;;) {
    const { value: page, done } = await broadcaster.alone(accountId, () => pages.next());
    if (done || until.aborted) return;
    yield* writePage(page, filter);
  }
}

type EventPiece = StreamPiece<StreamPosition>;

/** A heartbeat keeps the connection open and moves the position on. */
function writeBeat(position: StreamPosition, hasIds: boolean): EventPiece {
  const text = hasIds ? `id: ${writePosition(position)}\n${stillHere}\n` : stillHere;
  return { bytes: Buffer.from(text), position };
}

/**
 * The events of a page that the filter takes, as bytes for any number of readers. It is a generator so that other
 * work runs between two pieces.
 */
function* writePage({ events }: Page, filter: EventFilter): Generator<EventPiece> {
  const { takes, hasIds } = filter;
  let text = '';
  let last: StreamPosition | undefined;
  for (const [i, { row }] of events.entries()) {
    if (!takes(row)) continue;
    // The events up to the next one that is taken are not for this reader, so its position passes them too.
    const position = events[nextOf(events, i, takes) - 1]?.position;
    if (!position) continue;
    if (hasIds) text += `id: ${writePosition(position)}\n${writeData(row)}\n`;
    else text += (text === '' ? '' : '\n') + writeNamed(row);
    last = position;
    if (text.length < chunkBytes) continue;
    yield { bytes: Buffer.from(text), position };
    text = '';
  }
  if (text !== '' && last) yield { bytes: Buffer.from(text), position: last };
}

/** Alarm changes have an SSE event name, so that a client that listens for `message` receives only events. */
function writeData(row: StreamedRow): string {
  return row.type === 'alarm'
    ? writeNamed(row)
    : `data: ${JSON.stringify(toEventView(row, row.uuid))}\n`;
}

function writeNamed(row: StreamedRow): string {
  return row.type === 'alarm'
    ? writeMessage('alarm', JSON.stringify(toAlarmChange(row)))
    : writeMessage('event', JSON.stringify(toEventView(row, row.uuid)));
}

function nextOf(events: Page['events'], i: number, takes: EventFilter['takes']): number {
  const next = events.findIndex(({ row }, place) => place > i && takes(row));
  return next < 0 ? events.length : next;
}

/** Events and alarm changes as they are committed, for a stream that carries several kinds. */
export function createEventSource(deps: EventSourceDeps): OpenSource {
  return async (asked) => {
    const from = asked.from === null ? null : parsePosition(asked.from);
    if (asked.from !== null && !from) throw invalidLastEventId();
    const filter = askedFilter(asked);
    const first = await deps.broadcaster.join(filter);
    return {
      leave: first.leave,
      pieces: (until) => writeSource(deps, { filter, from, first, until }),
    };
  };
}

function askedFilter({ kinds, reach }: AskedSource): EventFilter {
  const hasEvents = kinds.has('events');
  const hasAlarms = kinds.has('alarms');
  return {
    accountId: reach.accountId,
    deviceId: null,
    key: JSON.stringify([reach.key, hasEvents, hasAlarms]),
    takes: (row) => (row.type === 'alarm' ? hasAlarms : hasEvents) && reach.has(row.deviceId),
    hasIds: false,
  };
}

async function* writeSource(
  deps: EventSourceDeps,
  following: Following,
): AsyncGenerator<StreamPiece<string>> {
  for await (const { bytes, position } of followEvents(deps, following))
    yield { bytes, position: writePosition(position) };
}

/** A subscription to an account's events. */
type Followed = {
  subscriber: EventSubscriber;
  leave(): void;
};

/** All event streams of this process, by account. */
export type EventBroadcaster = {
  /** The subscriber receives whatever the filter takes of what is committed from then on. */
  join(filter: EventFilter): Promise<Followed>;
  /** Runs a query for a single stream. Those of an account run one at a time. */
  alone<T>(accountId: number, work: () => Promise<T>): Promise<T>;
};

/** Listens to the bus and queries the database only while there are streams. */
export function createEventBroadcaster({
  bus,
  ...options
}: Pick<AccountEventsOptions, 'db' | 'heartbeatMs' | 'monotonicClock' | 'budget'> & {
  bus: Bus;
}): EventBroadcaster {
  const byAccount = new Map<number, AccountEvents>();
  const slicesOf = createSlices();
  let ends: (() => void)[] = [];

  const listen = (): void => {
    ends = [
      bus.subscribe('events', ({ accountIds }) => {
        for (const accountId of accountIds) byAccount.get(accountId)?.wake();
      }),
      bus.subscribe('resync', () => {
        for (const ofAccount of byAccount.values()) ofAccount.wake();
      }),
    ];
  };
  const follow = (accountId: number): AccountEvents => {
    if (byAccount.size === 0) listen();
    const onEnd = () => {
      byAccount.delete(accountId);
      if (byAccount.size === 0) for (const end of ends) end();
    };
    const nextSlice = slicesOf(accountId);
    const ofAccount = new AccountEvents({ ...options, accountId, nextSlice, onEnd });
    byAccount.set(accountId, ofAccount);
    return ofAccount;
  };

  return {
    async join(filter) {
      const { accountId } = filter;
      const ofAccount = byAccount.get(accountId) ?? follow(accountId);
      const subscriber = await ofAccount.join(filter);
      return { subscriber, leave: () => ofAccount.leave(subscriber) };
    },
    alone: createFairRunner(1),
  };
}

type AccountEventsOptions = {
  db: Sql;
  accountId: number;
  /** No stream is silent for longer. If nothing wakes it, the database is queried every half of it. */
  heartbeatMs: number;
  nextSlice: NextSlice;
  monotonicClock: MonotonicClock;
  /** Shared by all streams. */
  budget: SubscriberBudget;
  /** Called when the last stream has left. */
  onEnd: () => void;
};

/** The database is queried at most ten times a second, however many commits there are. */
const pauseMs = 100;
/** At most this many writes a ms to an account's streams: with many streams, writes are fewer and larger. */
const writesPerMs = 2;
/** How many streams are written to before the event loop does other work: 2 to 3 ms. */
const writesPerTurn = 32;

type EventSubscriber = Subscriber<StreamPosition>;

type Joining = { filter: EventFilter } & PromiseWithResolvers<EventSubscriber>;

/** Streams that receive the same bytes. */
type Group = { filter: EventFilter; subscribers: Set<EventSubscriber> };

/**
 * Follows what is committed for one account, for all its streams together: it reads the database once and writes
 * each event once, however many streams there are.
 */
class AccountEvents {
  readonly #options: AccountEventsOptions;
  readonly #groups = new Map<string, Group>();
  #joining: Joining[] = [];
  #position: StreamPosition | undefined;
  #beatMs: number;
  readonly #rest = new WakeableRest();

  constructor(options: AccountEventsOptions) {
    this.#options = options;
    this.#beatMs = options.monotonicClock();
    void this.#run();
  }

  /** Adds a stream: it receives what is committed from now on. */
  join(filter: EventFilter): Promise<EventSubscriber> {
    const joining = { filter, ...Promise.withResolvers<EventSubscriber>() };
    this.#joining.push(joining);
    this.wake();
    return joining.promise;
  }

  leave(subscriber: EventSubscriber): void {
    subscriber.leave();
    this.#forget(subscriber);
    if (this.#count() === 0) this.wake();
  }

  /** Something was committed, or may have been. */
  wake(): void {
    this.#rest.wake();
  }

  async #run(): Promise<void> {
    try {
      // The first stream joins within this iteration of the event loop.
      await Promise.resolve();
      while (this.#count() + this.#joining.length > 0) {
        this.#rest.begin();
        await this.#round();
        await delay(Math.max(pauseMs, this.#count() / writesPerMs));
        await this.#rest.rest(this.#restMs());
      }
      this.#options.onEnd();
    } catch (cause) {
      this.#options.onEnd();
      for (const { reject } of this.#joining) reject(cause);
      const error =
        cause instanceof Error ? cause : new Error('A stream was interrupted.', { cause });
      for (const subscriber of this.#all()) subscriber.end(error);
    }
  }

  async #round(): Promise<void> {
    const { db, accountId, monotonicClock } = this.#options;
    // Taken before the query, because these streams must miss nothing that is committed after they joined.
    const joining = this.#joining.splice(0);
    try {
      const to = await readPosition(db);
      if (this.#position) await this.#advance(accountId, this.#position, to);
      this.#position = to;
      await this.#beat(to);
      const monotonicMs = monotonicClock();
      for (const { filter, resolve } of joining)
        resolve(this.#add(filter, new Subscriber(to, monotonicMs, this.#options.budget)));
    } catch (error) {
      for (const { reject } of joining) reject(error);
      throw error;
    }
  }

  async #advance(accountId: number, from: StreamPosition, to: StreamPosition): Promise<void> {
    const { db, nextSlice } = this.#options;
    if (this.#count() === 0) return;
    for await (const page of replayEvents(db, { accountId, deviceId: null }, from, to)) {
      const devices = new Set(page.events.map(({ row }) => row.deviceId));
      for (const { filter, subscribers } of this.#groups.values()) {
        if (filter.deviceId !== null && !devices.has(filter.deviceId)) continue;
        await nextSlice();
        for (const piece of writePage(page, filter)) await this.#give(subscribers, piece);
      }
    }
    for (const subscriber of this.#all()) subscriber.position = to;
  }

  async #give(subscribers: Iterable<EventSubscriber>, piece: EventPiece): Promise<void> {
    const monotonicMs = this.#options.monotonicClock();
    let given = 0;
    for (const subscriber of subscribers) {
      if (given % writesPerTurn === 0) await this.#options.nextSlice();
      given += 1;
      subscriber.give(piece, monotonicMs);
      if (subscriber.hasEnded) this.#forget(subscriber);
    }
  }

  /** Runs twice in `heartbeatMs` and skips streams that were sent something since the last time. */
  async #beat(position: StreamPosition): Promise<void> {
    const everyMs = this.#options.heartbeatMs / 2;
    const monotonicMs = this.#options.monotonicClock();
    if (monotonicMs - this.#beatMs < everyMs) return;
    this.#beatMs = monotonicMs;
    for (const hasIds of [true, false]) {
      const groups = [...this.#groups.values()].filter(({ filter }) => filter.hasIds === hasIds);
      const subscribers = groups.flatMap((group) => [...group.subscribers]);
      const silent = subscribers.filter(({ givenMs }) => monotonicMs - givenMs >= everyMs);
      if (silent.length > 0) await this.#give(silent, writeBeat(position, hasIds));
    }
  }

  /** The time until the next heartbeat. */
  #restMs(): number {
    const { heartbeatMs, monotonicClock } = this.#options;
    return this.#beatMs + heartbeatMs / 2 - monotonicClock();
  }

  #add(filter: EventFilter, subscriber: EventSubscriber): EventSubscriber {
    const group = this.#groups.get(filter.key) ?? { filter, subscribers: new Set() };
    group.subscribers.add(subscriber);
    this.#groups.set(filter.key, group);
    return subscriber;
  }

  #forget(subscriber: EventSubscriber): void {
    for (const [key, { subscribers }] of this.#groups)
      if (subscribers.delete(subscriber) && subscribers.size === 0) this.#groups.delete(key);
  }

  #count(): number {
    let count = 0;
    for (const { subscribers } of this.#groups.values()) count += subscribers.size;
    return count;
  }

  *#all(): Generator<EventSubscriber> {
    for (const { subscribers } of this.#groups.values()) yield* subscribers;
  }
}

/** What a stream receives, and in which form. Streams whose filters have the same key share their bytes. */
export type EventFilter = StreamScope & {
  key: string;
  takes: (row: StreamedRow) => boolean;
  /** Each message has its own id, and events have no SSE name. Otherwise see `StreamPiece`. */
  hasIds: boolean;
};

/**
 * For the streams of events alone: all devices of an account, or one of them. The filters choose events; changes of
 * alarms are not events, so all of them are sent.
 */
export function eventFilterOf(
  deviceId: number | null,
  reach: Reach,
  asked: EventFilters,
): EventFilter {
  return {
    accountId: reach.accountId,
    deviceId,
    key: JSON.stringify([reach.key, asked]),
    takes: (row) => reach.has(row.deviceId) && (row.type === 'alarm' || isMatch(asked, row)),
    hasIds: true,
  };
}
