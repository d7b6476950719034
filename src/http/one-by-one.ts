import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

export type OneByOne = {
  handle: Handle;
  /** Whether a request of the connection is under way. */
  isBusy(socket: Socket): boolean;
};

/** A streamed answer has ten: three of ours, and what Node's `pipeline` adds. Twice as many are a leak. */
const closeListeners = 20;

/** Requests of a connection that wait for those before them; with one more it is closed. */
const maxWaiting = 32;

/** A connection's: one is under way, or none. */
type Line = { isBusy: boolean; waiting: (() => void)[] | null };

/** Starts a request, at once or later; false: it never will. */
export type Start = (request: IncomingMessage, go: () => void) => boolean;

export type OneByOneOptions = {
  handle: Handle;
  start: Start;
  /** Answers what was not started. */
  refuse: (response: ServerResponse) => void;
  /** Is told when the last request of a connection that had come is answered. */
  onIdle: (socket: Socket) => void;
};

/**
 * Answers the requests of a connection one after the other. Node hands over all that a client has written
 * (RFC 9112 section 9.3.2, pipelining), thousands at once, and their answers leave in this order anyway.
 */
export function oneByOne({ handle, start, refuse, onIdle }: OneByOneOptions): OneByOne {
  const lines = new WeakMap<Socket, Line>();

  function lineOf(socket: Socket): Line {
    const known = lines.get(socket);
    if (known) return known;
    const line: Line = { isBusy: false, waiting: null };
    lines.set(socket, line);
    return line;
  }

  function begin(line: Line, request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    line.isBusy = true;
    response.setMaxListeners(closeListeners);
    // It is emitted once: without `once` there is nothing to wrap, and to remove.
    response.on('close', () => {
      const next = socket.destroyed ? undefined : line.waiting?.shift();
      if (next) return next();
      line.isBusy = false;
      line.waiting = null;
      onIdle(socket);
    });
    const go = (): void => {
      if (!socket.destroyed) handle(request, response);
    };
    if (!start(request, go)) refuse(response);
  }

  return {
    handle(request, response) {
      const { socket } = request;
      if (socket.destroyed) return;
      const line = lineOf(socket);
      if (!line.isBusy) return begin(line, request, response);
      line.waiting ??= [];
      if (line.waiting.length >= maxWaiting) {
        line.waiting = null;
        socket.destroy();
      } else line.waiting.push(() => begin(line, request, response));
    },
    isBusy: (socket) => lines.get(socket)?.isBusy ?? false,
  };
}
