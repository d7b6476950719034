import type { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';
import { WakeableRest } from '../lib/wait.ts';
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
  Member,
  readInTurn,
  type ReadInTurn,
  type TakeTurn,
  type WaitingRoom,
} from '../streams/subscriber.ts';
import {
  catchUpEvents,
  type Page,
  type StreamedRow,
  type StreamScope,
  type WalkAlarms,
} from './feed.ts';
import { toAlarmChange, toEventView } from './schema.ts';

export type EventSourceDeps = {
  db: Sql;
  hub: Hub;
  exports: ReadInTurn;
  walkAlarms?: WalkAlarms | undefined;
};

export type EventStreamOptions = EventSourceDeps &
  RightsDeps & {
    /** How long a reader may let a chunk wait. */
    patienceMs: number;
  };

export type EventReader = Omit<ReaderRights, 'accountId'> & {
  audience: Audience;
  /** The header `Last-Event-ID`, empty where the stream is new. */
  lastEventId: string;
};

/** What is committed from now on, or from where the reader was, as server-sent events. */
export async function openEventStream(
  options: EventStreamOptions,
  { audience, lastEventId, ...reader }: EventReader,
): Promise<Readable> {
  const from = parseFrom(lastEventId);
  const first = await options.hub.join(audience);
  const write = async function* (): AsyncGenerator<Buffer> {
    const { until, release } = watchRights(options, { ...reader, accountId: audience.accountId });
    try {
      const pieces = followEvents(options, { audience, from, first, until });
      for await (const { bytes } of pieces) yield bytes;
    } finally {
      release();
    }
  };
  const readable = cutOffWhenSlow(write(), options.patienceMs);
  // Also where the reader has gone before anything was read.
  readable.once('close', first.leave);
  return readable;
}

/** Null for a stream that is new. Throws `invalid-input`. */
function parseFrom(lastEventId: string): StreamPosition | null {
  if (lastEventId === '') return null;
  const from = parsePosition(lastEventId);
  if (from) return from;
  throw invalidLastEventId();
}

export type Following = {
  audience: Audience;
  /** Null: from now on. */
  from: StreamPosition | null;
  /** What has joined already. */
  first: Followed;
  until: AbortSignal;
};

/** What an audience is sent, until `until`. Whoever falls behind what is given to all goes on by itself. */
export async function* followEvents(
  deps: EventSourceDeps,
  { audience, from, first, until }: Following,
): AsyncGenerator<EventPiece> {
  let followed = first;
  const end = () => followed.leave();
  until.addEventListener('abort', end);
  try {
    let position = from ?? first.member.position;
    // At once, so that a reader knows where it is before anything happens.
    yield writeBeat(position, audience.hasIds);
    while (!until.aborted) {
      const { position: to } = followed.member;
      yield* readBetween(deps, audience, { from: position, to, until });
      yield* followed.member.read();
      // It has been sent all it was given, and could not be given more: it goes on from there.
      position = followed.member.position;
      followed.leave();
      if (!until.aborted) followed = await deps.hub.join(audience);
    }
  } finally {
    until.removeEventListener('abort', end);
    followed.leave();
  }
}

type Between = { from: StreamPosition; to: StreamPosition; until: AbortSignal };

/** What one reader alone has missed: read for it alone, in turns with the account's other readers. */
async function* readBetween(
  { db, hub, exports, walkAlarms }: EventSourceDeps,
  audience: Audience,
  { from, to, until }: Between,
): AsyncGenerator<EventPiece> {
  if (from === to) return;
  const { accountId } = audience;
  // Who was away for long has all its events looked through.
  const archiveSql = readInTurn(exports, accountId, db);
  const pages = catchUpEvents(db, audience, from, to, {
    sql: archiveSql,
    ...(walkAlarms && { walkAlarms }),
  });
  for (;;) {
    const { value: page, done } = await hub.alone(accountId, () => pages.next());
    if (done || until.aborted) return;
    yield* writePage(page, audience);
  }
}

export type EventPiece = StreamPiece<StreamPosition>;

/** A heart-beat keeps the way open and moves the position on. */
export function writeBeat(position: StreamPosition, hasIds: boolean): EventPiece {
  const text = hasIds ? `id: ${writePosition(position)}\n${stillHere}\n` : stillHere;
  return { bytes: Buffer.from(text), position };
}

/**
 * The events of a page that an audience takes, as bytes which any number of readers can be sent. A
 * generator, so that others may have a turn between two pieces.
 */
export function* writePage({ events }: Page, audience: Audience): Generator<EventPiece> {
  const { takes, hasIds } = audience;
  let text = '';
  let last: StreamPosition | undefined;
  for (const [i, { row }] of events.entries()) {
    if (!takes(row)) continue;
    // What comes after it until the next that is taken is not for this reader: it has seen that, too.
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

/** Changes of alarms have a name of their own: who listens for messages only is sent events. */
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

function nextOf(events: Page['events'], i: number, takes: Audience['takes']): number {
  const next = events.findIndex(({ row }, place) => place > i && takes(row));
  return next < 0 ? events.length : next;
}

/** Events and changes of alarms, as they are committed, for a stream that carries several kinds. */
export function createEventSource(deps: EventSourceDeps): OpenSource {
  return async (asked) => {
    const from = asked.from === null ? null : parsePosition(asked.from);
    if (asked.from !== null && !from) throw invalidLastEventId();
    const audience = askedAudience(asked);
    const first = await deps.hub.join(audience);
    return {
      leave: first.leave,
      pieces: (until) => writeSource(deps, { audience, from, first, until }),
    };
  };
}

function askedAudience({ kinds, reach }: AskedSource): Audience {
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

export type HubOptions = Pick<FollowerOptions, 'db' | 'heartbeatMs' | 'monotonicClock' | 'room'> & {
  bus: Bus;
};

/** A stream that follows its account. */
export type Followed = {
  member: EventMember;
  leave(): void;
};

/** All event streams of this process, by account. */
export type Hub = {
  /** From then on the member is given what is committed for the audience. */
  join(audience: Audience): Promise<Followed>;
  /** Runs what one stream asks of the database for itself: one of an account's at a time. */
  alone<T>(accountId: number, work: () => Promise<T>): Promise<T>;
};

/** Subscribes to the bus and queries the database only while there are streams. */
export function createHub({ bus, ...options }: HubOptions): Hub {
  const followers = new Map<number, Follower>();
  const lines = new Map<number, Promise<unknown>>();
  const takeTurn = createSlices();
  let ends: (() => void)[] = [];

  const listen = (): void => {
    ends = [
      bus.subscribe('events', ({ accountIds }) => {
        for (const accountId of accountIds) followers.get(accountId)?.wake();
      }),
      bus.subscribe('resync', () => {
        for (const follower of followers.values()) follower.wake();
      }),
    ];
  };
  const follow = (accountId: number): Follower => {
    if (followers.size === 0) listen();
    const onEnd = () => {
      followers.delete(accountId);
      if (followers.size === 0) for (const end of ends) end();
    };
    const follower = new Follower({ ...options, accountId, takeTurn, onEnd });
    followers.set(accountId, follower);
    return follower;
  };

  return {
    async join(audience) {
      const { accountId } = audience;
      const follower = followers.get(accountId) ?? follow(accountId);
      const member = await follower.join(audience);
      return { member, leave: () => follower.leave(member) };
    },
    async alone(accountId, work) {
      const before = lines.get(accountId);
      const own = (async () => {
        await before;
        return work();
      })();
      const settled = own.then(
        () => undefined,
        () => undefined,
      );
      lines.set(accountId, settled);
      try {
        return await own;
      } finally {
        if (lines.get(accountId) === settled) lines.delete(accountId);
      }
    },
  };
}

export type FollowerOptions = {
  db: Sql;
  accountId: number;
  /** No stream is silent for longer, and the database is asked twice as often unasked. */
  heartbeatMs: number;
  takeTurn: TakeTurn;
  monotonicClock: MonotonicClock;
  /** Of all streams. */
  room: WaitingRoom;
  /** The last stream has left. */
  onEnd: () => void;
};

/** However many commits there are, the database is asked ten times a second at most. */
const pauseMs = 100;
/** Writes to an account's streams, at most; with many streams the writes are fewer and larger. */
const writesPerMs = 2;
/** Streams that are written to before the event loop does other work: 2 to 3 ms. */
const writesPerTurn = 32;

export type EventMember = Member<StreamPosition>;

type Joining = { audience: Audience } & PromiseWithResolvers<EventMember>;

/** The streams that are sent the same. */
type Group = { audience: Audience; members: Set<EventMember> };

/**
 * Follows what is committed for one account, for all its streams together: the database is read once,
 * and an event is written once, however many streams there are.
 */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #groups = new Map<string, Group>();
  #joining: Joining[] = [];
  #position: StreamPosition | undefined;
  #beatMs: number;
  readonly #rest = new WakeableRest();

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#beatMs = options.monotonicClock();
    void this.#run();
  }

  /** A stream of the account, or of some of its devices: it is given what is committed from now on. */
  join(audience: Audience): Promise<EventMember> {
    const joining = { audience, ...Promise.withResolvers<EventMember>() };
    this.#joining.push(joining);
    this.wake();
    return joining.promise;
  }

  leave(member: EventMember): void {
    member.leave();
    this.#forget(member);
    if (this.#count() === 0) this.wake();
  }

  /** Something was committed, or may have been. */
  wake(): void {
    this.#rest.wake();
  }

  async #run(): Promise<void> {
    try {
      // The first stream joins in the same turn of the event loop.
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
      const error = cause instanceof Error ? cause : new Error('A stream broke off.', { cause });
      for (const member of this.#all()) member.end(error);
    }
  }

  async #round(): Promise<void> {
    const { db, accountId, monotonicClock } = this.#options;
    // Taken before the query: these streams must miss nothing that is committed after they joined.
    const joining = this.#joining.splice(0);
    try {
      const to = await readPosition(db);
      if (this.#position) await this.#advance(accountId, this.#position, to);
      this.#position = to;
      await this.#beat(to);
      const monotonicMs = monotonicClock();
      for (const { audience, resolve } of joining)
        resolve(this.#add(audience, new Member(to, monotonicMs, this.#options.room)));
    } catch (error) {
      for (const { reject } of joining) reject(error);
      throw error;
    }
  }

  async #advance(accountId: number, from: StreamPosition, to: StreamPosition): Promise<void> {
    const { db, takeTurn } = this.#options;
    if (this.#count() === 0) return;
    for await (const page of catchUpEvents(db, { accountId, deviceId: null }, from, to)) {
      const devices = new Set(page.events.map(({ row }) => row.deviceId));
      for (const { audience, members } of this.#groups.values()) {
        if (audience.deviceId !== null && !devices.has(audience.deviceId)) continue;
        await takeTurn();
        for (const piece of writePage(page, audience)) await this.#give(members, piece);
      }
    }
    for (const member of this.#all()) member.position = to;
  }

  async #give(members: Iterable<EventMember>, piece: EventPiece): Promise<void> {
    const monotonicMs = this.#options.monotonicClock();
    let given = 0;
    for (const member of members) {
      if (given % writesPerTurn === 0) await this.#options.takeTurn();
      given += 1;
      member.give(piece, monotonicMs);
      if (member.hasEnded) this.#forget(member);
    }
  }

  /** Twice in `heartbeatMs`: streams that were sent something since the last time are left out. */
  async #beat(position: StreamPosition): Promise<void> {
    const everyMs = this.#options.heartbeatMs / 2;
    const monotonicMs = this.#options.monotonicClock();
    if (monotonicMs - this.#beatMs < everyMs) return;
    this.#beatMs = monotonicMs;
    for (const hasIds of [true, false]) {
      const groups = [...this.#groups.values()].filter(
        ({ audience }) => audience.hasIds === hasIds,
      );
      const members = groups.flatMap((group) => [...group.members]);
      const silent = members.filter(({ givenMs }) => monotonicMs - givenMs >= everyMs);
      if (silent.length > 0) await this.#give(silent, writeBeat(position, hasIds));
    }
  }

  /** Until it is time for a heart-beat. */
  #restMs(): number {
    const { heartbeatMs, monotonicClock } = this.#options;
    return this.#beatMs + heartbeatMs / 2 - monotonicClock();
  }

  #add(audience: Audience, member: EventMember): EventMember {
    const group = this.#groups.get(audience.key) ?? { audience, members: new Set() };
    group.members.add(member);
    this.#groups.set(audience.key, group);
    return member;
  }

  #forget(member: EventMember): void {
    for (const [key, { members }] of this.#groups)
      if (members.delete(member) && members.size === 0) this.#groups.delete(key);
  }

  #count(): number {
    let count = 0;
    for (const { members } of this.#groups.values()) count += members.size;
    return count;
  }

  *#all(): Generator<EventMember> {
    for (const { members } of this.#groups.values()) yield* members;
  }
}

/** What a stream is sent, and how. Streams whose audience has the same key are written for once. */
export type Audience = StreamScope & {
  key: string;
  takes: (row: StreamedRow) => boolean;
  /** Each message has its own id, and events have no SSE name. Else see `StreamPiece`. */
  hasIds: boolean;
};

/** All of an account's devices, or one of them, as the streams of events alone are sent it. */
export function audienceOf(deviceId: number | null, reach: Reach): Audience {
  return {
    accountId: reach.accountId,
    deviceId,
    key: `events of ${reach.key}`,
    takes: (row) => reach.has(row.deviceId),
    hasIds: true,
  };
}
