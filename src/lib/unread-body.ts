import type { IncomingMessage } from 'node:http';

/** What a client is still sending is read and dropped, within these bounds. */
const longestMs = 1_000;
const mostBytes = 4 * 1_048_576;

/**
 * Reads and drops what is still to come of a request that is about to be refused, for a second and
 * 4 MiB at most. A connection that is closed with bytes unread is reset, which may take the answer with
 * it (RFC 9112 section 9.6).
 */
export function dropUnreadBody(request: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    if (request.readableEnded || request.destroyed) return resolve();
    let bytes = 0;
    const timer = setTimeout(done, longestMs);
    function done(): void {
      clearTimeout(timer);
      request.off('data', onData).off('end', done).off('error', done).off('close', done);
      resolve();
    }
    function onData(chunk: Buffer): void {
      bytes += chunk.length;
      if (bytes > mostBytes) done();
    }
    request.unpipe();
    request.on('data', onData).on('end', done).on('error', done).on('close', done);
    request.resume();
  });
}
