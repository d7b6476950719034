import type { Readable } from 'node:stream';
import type { Bus } from '../bus/bus.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Exports } from '../quotas/exports.ts';
import { catchUp, type WalkAlarms } from './catch-up.ts';
import type { StreamScope } from './feed.ts';
import type { Followed, Hub } from './hub.ts';
import { parsePosition, type StreamPosition } from './position.ts';
import { cutOffWhenSlow, writeBeat, writePage } from './server-sent.ts';

export type EventStreamOptions = {
  db: Sql;
  bus: Bus;
  hub: Hub;
  heartbeatMs: number;
  /** Told of each account that the operator shuts out. Gives what ends that. */
  onAccountDisabled: (listener: (accountId: number) => void) => () => void;
  /** How long a reader may let a chunk wait. */
  patienceMs: number;
  exports: Pick<Exports, 'page'>;
  walkAlarms?: WalkAlarms | undefined;
};

export type StreamReader = {
  scope: StreamScope;
  sessionId: string;
  /** The header `Last-Event-ID`, empty where the stream is new. */
  lastEventId: string;
  /** Rejects once the reader may read no longer: the token ended, the device is somebody else's. */
  recheck: () => Promise<unknown>;
  /** The reader has gone, or the service stops. */
  signal: AbortSignal;
};

/** What is committed from now on, or from where the reader was, as server-sent events. */
export async function openEventStream(
  options: EventStreamOptions,
  reader: StreamReader,
): Promise<Readable> {
  const from = parseFrom(reader.lastEventId);
  const first = await options.hub.join(reader.scope);
  const readable = cutOffWhenSlow(write(options, reader, from, first), options.patienceMs);
  // Also where the reader has gone before anything was read.
  readable.once('close', first.leave);
  return readable;
}

/** Null for a stream that is new. Throws `invalid-input`. */
function parseFrom(lastEventId: string): StreamPosition | null {
  if (lastEventId === '') return null;
  const from = parsePosition(lastEventId);
  if (from) return from;
  const problems = [{ path: 'Last-Event-ID', message: 'is not an id of this stream' }];
  throw new DomainError('invalid-input', 'The request is not valid.', { problems });
}

async function* write(
  options: EventStreamOptions,
  reader: StreamReader,
  from: StreamPosition | null,
  first: Followed,
): AsyncGenerator<Buffer> {
  const { bus, hub, heartbeatMs, onAccountDisabled } = options;
  const { scope, sessionId, recheck } = reader;
  const ended = new AbortController();
  const forget = bus.subscribe('revoked', (revoked) => {
    const meant = revoked.sessionId === undefined || revoked.sessionId === sessionId;
    if (revoked.accountId === scope.accountId && meant) ended.abort();
  });
  const stayUnlessDisabled = onAccountDisabled((accountId) => {
    if (accountId === scope.accountId) ended.abort();
  });
  const timer = setInterval(() => void recheck().catch(() => ended.abort()), heartbeatMs);
  const until = AbortSignal.any([reader.signal, ended.signal]);
  let followed = first;
  const end = () => followed.leave();
  until.addEventListener('abort', end);
  try {
    let position = from ?? first.member.position;
    // At once, so that a reader knows where it is before anything happens.
    yield writeBeat(position);
    while (!until.aborted) {
      yield* readBetween(options, scope, { from: position, to: followed.member.position, until });
      yield* followed.member.read();
      // It has been sent all it was given, and could not be given more: it goes on from there.
      position = followed.member.position;
      followed.leave();
      if (!until.aborted) followed = await hub.join(scope);
    }
  } finally {
    until.removeEventListener('abort', end);
    followed.leave();
    clearInterval(timer);
    forget();
    stayUnlessDisabled();
  }
}

type Between = { from: StreamPosition; to: StreamPosition; until: AbortSignal };

/** What one reader alone has missed: read for it alone, in turns with the account's other readers. */
async function* readBetween(
  { db, hub, exports, walkAlarms }: EventStreamOptions,
  scope: StreamScope,
  { from, to, until }: Between,
): AsyncGenerator<Buffer> {
  if (from === to) return;
  // Who was away for long has all its events looked through.
  const archiveSql: Sql = {
    query: (...args: Parameters<Sql['query']>) =>
      exports.page(scope.accountId, () => db.query(...args)),
  } as Sql;
  const pages = catchUp(db, scope, from, to, {
    sql: archiveSql,
    ...(walkAlarms && { walkAlarms }),
  });
  for (;;) {
    const { value: page, done } = await hub.alone(scope.accountId, () => pages.next());
    if (done || until.aborted) return;
    yield* writePage(page, scope.deviceId);
  }
}
