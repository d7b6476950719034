import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** A streamed answer has eleven: four of ours, and what Node's `pipeline` adds. Twice as many are a leak. */
const closeListeners = 20;

/** Requests of a connection that wait for those before them; with one more it is closed. */
const maxWaiting = 32;

/**
 * Answers the requests of a connection one after the other. Node hands over all that a client has written
 * (RFC 9112 section 9.3.2, pipelining), thousands at once, and their answers leave in this order anyway.
 */
export function oneByOne(handle: Handle): Handle {
  const busy = new WeakMap<Socket, (() => void)[]>();

  function start(socket: Socket, request: IncomingMessage, response: ServerResponse): void {
    response.setMaxListeners(closeListeners);
    response.once('close', () => {
      const next = busy.get(socket)?.shift();
      if (next && !socket.destroyed) next();
      else busy.delete(socket);
    });
    handle(request, response);
  }

  return (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return;
    const waiting = busy.get(socket);
    if (waiting && waiting.length >= maxWaiting) {
      waiting.length = 0;
      socket.destroy();
    } else if (waiting) {
      waiting.push(() => start(socket, request, response));
    } else {
      busy.set(socket, []);
      start(socket, request, response);
    }
  };
}
