import type { Readable } from 'node:stream';
import type { Bus } from '../bus/bus.ts';
import type { Database } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import { readPosition, type StreamScope } from './feed.ts';
import { follow } from './follow.ts';
import { parsePosition, type Position } from './position.ts';
import { cutOffWhenSlow, writePage } from './server-sent.ts';

export type EventStreamOptions = {
  db: Database;
  bus: Bus;
  heartbeatMs: number;
  /** How long a reader may let a page wait. */
  patienceMs: number;
};

export type Reader = {
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
  reader: Reader,
): Promise<Readable> {
  const { db } = options;
  const { lastEventId } = reader;
  const from = lastEventId === '' ? await readPosition(db) : parsePosition(lastEventId);
  if (!from) {
    const problems = [{ path: 'Last-Event-ID', message: 'is not an id of this stream' }];
    throw new DomainError('invalid-input', 'The request is not valid.', { problems });
  }
  return cutOffWhenSlow(write(options, reader, from), options.patienceMs);
}

async function* write(
  { db, bus, heartbeatMs }: EventStreamOptions,
  { scope, sessionId, recheck, signal }: Reader,
  from: Position,
): AsyncGenerator<string> {
  const ended = new AbortController();
  const forget = bus.subscribe('revoked', (revoked) => {
    const meant = revoked.sessionId === undefined || revoked.sessionId === sessionId;
    if (revoked.accountId === scope.accountId && meant) ended.abort();
  });
  const timer = setInterval(() => void recheck().catch(() => ended.abort()), heartbeatMs);
  try {
    // At once, so that a reader knows where it is before anything happens.
    yield writePage({ events: [], position: from });
    const until = AbortSignal.any([signal, ended.signal]);
    for await (const page of follow({ db, bus, scope, from, heartbeatMs, signal: until })) {
      yield writePage(page);
    }
  } finally {
    clearInterval(timer);
    forget();
  }
}
