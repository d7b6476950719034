import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/**
 * Is to be told of each request. Ends connections of those that take longer than `longestMs` to arrive, as Node's `requestTimeout`
 * would, but for those of `ownPace`: how long these may take is said by whoever reads them.
 */
export function limitArrival(
  server: Server,
  longestMs: number,
  ownPace: WeakSet<IncomingMessage>,
): (response: ServerResponse) => void {
  /** Of this turn of the event loop: most have arrived as a whole by its end, and need no timer. */
  let arriving: ServerResponse[] = [];

  function limitThose(): void {
    const responses = arriving;
    arriving = [];
    for (const response of responses) if (!response.req.complete) limit(response);
  }

  function limit(response: ServerResponse): void {
    const { req: request } = response;
    const timer = setTimeout(() => {
      if (request.complete || ownPace.has(request) || request.socket.destroyed) return;
      server.emit('clientError', tooLate(), request.socket);
    }, longestMs);
    timer.unref();
    // The rest of a body that nobody reads still arrives after the answer.
    response.once('close', () => {
      if (request.complete) clearTimeout(timer);
    });
  }

  return (response) => {
    if (!announcesBody(response.req)) return;
    if (arriving.push(response) === 1) setImmediate(limitThose);
  };
}

/** RFC 9112 section 6. */
function announcesBody({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return true;
  return Number(headers['content-length'] ?? 0) > 0;
}

/** As Node itself calls it. */
const tooLate = () =>
  Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
