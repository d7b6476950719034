import type { Readable } from 'node:stream';
import type { Sql } from '../db/sql.ts';
import { invalidLastEventId } from '../streams/ids.ts';
import { parsePosition, type StreamPosition } from '../streams/position.ts';
import { readInTurn, type ReadInTurn } from '../streams/read-in-turn.ts';
import { watchRights, type ReaderRights, type RightsDeps } from '../streams/rights.ts';
import { cutOffWhenSlow } from '../streams/server-sent.ts';
import type { Audience } from './audience.ts';
import { catchUpEvents, type WalkAlarms } from './catch-up.ts';
import type { Followed, Hub } from './hub.ts';
import { writeBeat, writePage, type EventPiece } from './write-page.ts';

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
