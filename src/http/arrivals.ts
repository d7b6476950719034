import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { network } from '../lib/address.ts';
import { MemoryBudget, type Reservation } from '../lib/fair-budget.ts';
import { LoopScheduler } from '../lib/event-loop.ts';
import { plain } from './answer.ts';
import { bufferAtMost, createSocketReads, readOn } from './socket-reads.ts';

export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts a request, at once or later; false: it never will. */
type Start = (request: IncomingMessage, go: () => void) => boolean;

type OneByOneOptions = {
  handle: Handle;
  start: Start;
  /** Answers a request that was not started. */
  refuse: (response: ServerResponse) => void;
  /** Called when a connection's request is answered and no other one has begun. */
  onIdle: (socket: Socket) => void;
  /** Bytes that connections may send before they can be parsed: of all clients; one address may use a quarter. */
  aheadBytes?: number | undefined;
};

/** A streamed answer has ten: three of ours, and those of Node's `pipeline`. Twice as many suggest a leak. */
const closeListeners = 20;

/** Ends a head, and a chunked body (RFC 9112 sections 2.1 and 7.1). */
const emptyLine = '\r\n\r\n';
/** A head is handed over together with the bytes after it if they are at most this many and contain no empty line. */
const smallHeadBytes = 2_048;
/** Pieces of a chunked body, whose chunks may have one byte each. They grow for as long as somebody reads the body. */
const leastChunked = 1_024;
const mostChunked = 4_096;
/** How much of a chunked body is buffered while nobody reads it. */
const unreadBytes = 256;
const usualAheadBytes = 67_108_864;

/**
 * Work of one turn of the event loop: about 100 small heads, and at most 2 ms for those that wait. A head of 16 KiB may
 * have thousands of fields, and counts as 17; a chunked body may have thousands of chunks.
 */
const mostPerTurn = 96;
const mostMs = 2;
const headCost = (bytes: number) => 1 + bytes / 1_024;
const chunkedCost = (bytes: number) => 1 + bytes / 256;

/**
 * Parses and answers a connection's requests one after the other. A client may pipeline thousands at once (RFC 9112
 * section 9.3.2), of 18 bytes each, and Node's parser would create a request and a response for every one. Here the
 * parser gets a request's bytes once the previous answer has left. Until then they stay unparsed, and the socket is not
 * read. Addresses take turns at parsing too.
 */
export class OneByOne {
  readonly #options: OneByOneOptions;
  readonly #lines = new WeakMap<Socket, Line>();
  readonly #readThrough = createSocketReads();
  readonly #scheduler = new LoopScheduler({ mostPerTurn, mostMs });
  readonly #ahead: MemoryBudget;
  #count = 0;

  constructor(options: OneByOneOptions) {
    const { aheadBytes: maxBytes = usualAheadBytes } = options;
    this.#options = options;
    this.#ahead = new MemoryBudget({ maxBytes, share: 1 / 4, maxWaiting: 0, maxWaitingOfKey: 0 });
  }

  /** Connections whose bytes could be parsed now but wait for their turn. */
  get waiting(): number {
    return this.#scheduler.waiting;
  }

  /** Whether a request of the connection is under way. */
  isBusy(socket: Socket): boolean {
    return this.#lines.get(socket)?.isBusy ?? false;
  }

  /**
   * Whether the connection may be closed to make room for another client: nothing is under way on it. If `isUrgent`,
   * also one whose client has not sent all of its request, sends more before it is answered, or does not take its
   * answer.
   */
  mayGo(socket: Socket, isUrgent: boolean): boolean {
    const line = this.#lines.get(socket);
    if (!line || line.isReleased) return false;
    const isIdle = !line.isBusy && line.held === null;
    if (isIdle || !isUrgent) return isIdle;
    return !line.isBusy || line.request?.complete === false || socket.writableNeedDrain;
  }

  /** Call it for each connection before node:http sees it. */
  watch(socket: Socket): void {
    const line = this.#lineOf(socket);
    line.readMore = this.#readThrough(socket, (bytes) => this.#read(line, bytes));
    socket.on('drain', () => this.#ask(line));
    socket.once('close', () => line.drop());
    socket.pause = () => {
      line.isPaused = true;
      return pause(socket);
    };
    socket.resume = () => {
      line.isPaused = false;
      if (line.held === null) return resume(socket);
      // The parser may have called this: do not call it back from within.
      this.#ask(line);
      return socket;
    };
  }

  /** Answers a parsed request with `handle` once it is its turn. */
  add(request: IncomingMessage, response: ServerResponse, handle = this.#options.handle): void {
    const { socket } = request;
    if (socket.destroyed) return;
    const line = this.#lineOf(socket);
    line.begins(request);
    response.setMaxListeners(closeListeners);
    // `close` is emitted once. `once` would only add a wrapper and its removal.
    response.on('close', () => this.#answered(line));
    const go = (): void => {
      if (!socket.destroyed) handle(request, response);
    };
    if (!this.#options.start(request, go)) this.#options.refuse(response);
  }

  /**
   * The client sent something that is not HTTP. `refuse` answers that, after the answer to a complete request before
   * it. A request that is itself broken has no other answer.
   */
  fail(socket: Socket, refuse: () => void): void {
    const line = this.#lines.get(socket);
    if (!line?.isBusy || !line.request?.complete) return refuse();
    line.refuse = refuse;
    line.drop();
  }

  /** The connection no longer speaks HTTP: from now on it is read like any other socket. */
  release(socket: Socket): void {
    const line = this.#lines.get(socket);
    if (!line) return;
    line.isReleased = true;
    Reflect.deleteProperty(socket, 'pause');
    Reflect.deleteProperty(socket, 'resume');
  }

  #lineOf(socket: Socket): Line {
    const known = this.#lines.get(socket);
    if (known) return known;
    const line = new Line(socket, String((this.#count += 1)));
    this.#lines.set(socket, line);
    return line;
  }

  #answered(line: Line): void {
    line.isBusy = false;
    line.forget();
    line.refuse?.();
    if (line.held !== null) this.#ask(line);
    else this.#options.onIdle(line.socket);
  }

  #read(line: Line, bytes: Buffer): boolean {
    const { socket } = line;
    if (line.isReleased) return socket.push(Buffer.from(bytes));
    if (line.refuse) return false;
    const parsed = line.held === null ? this.#parse(line, bytes) : 0;
    if (parsed === bytes.length || socket.destroyed) return true;
    const rest = Buffer.from(bytes.subarray(parsed));
    if (line.isReleased) return socket.push(rest);
    this.#hold(line, rest);
    return false;
  }

  #hold(line: Line, bytes: Buffer): void {
    if (line.refuse) return;
    line.held = line.held === null ? bytes : Buffer.concat([line.held, bytes]);
    if (line.place) line.place.resize(line.held.length);
    else line.place = this.#ahead.enter(line.address, line.held.length);
    if (line.place) this.#ask(line);
    else line.socket.destroy();
  }

  /** Queues the connection for its turn, if that is all it waits for. */
  #ask(line: Line): void {
    if (line.held === null || line.isQueued || !line.mayParse()) return;
    line.isQueued = true;
    this.#scheduler.wait({ address: line.address, who: line.name }, () => this.#serveLine(line));
  }

  #serveLine(line: Line): number {
    const { socket, held } = line;
    line.isQueued = false;
    if (held === null || socket.destroyed) return 0;
    const spent = { cost: 0 };
    const parsed = this.#parse(line, held, spent);
    if (line.held === null) return spent.cost;
    const rest = held.subarray(parsed);
    line.held = rest.length === 0 ? null : rest;
    if (line.isReleased) this.#handOn(line, rest);
    else if (line.held !== null) {
      line.place?.resize(rest.length);
      this.#ask(line);
    } else {
      line.drop();
      if (!line.isPaused) resume(socket);
    }
    return spent.cost;
  }

  #handOn(line: Line, rest: Buffer): void {
    line.drop();
    if (rest.length > 0) line.socket.push(rest);
    readOn(line.socket);
  }

  /**
   * Hands over what may be parsed now, and returns how many bytes that was. With `spent`, it is the turn of this
   * connection, and one piece that costs something is parsed. Without, parsing uses what is left of the current turn of
   * the event loop.
   */
  #parse(line: Line, bytes: Buffer, spent?: { cost: number }): number {
    let parsed = 0;
    while (parsed < bytes.length && line.mayParse()) {
      const rest = bytes.subarray(parsed);
      const { length, cost } = line.next(rest);
      if (cost > 0) {
        if (spent ? spent.cost > 0 : !this.#scheduler.takeNow(cost)) break;
        if (spent) spent.cost = cost;
      }
      line.hand(rest.subarray(0, length));
      parsed += length;
    }
    return parsed;
  }
}

/** How many bytes may be handed over at once, and the most that parsing them costs. */
type Piece = { length: number; cost: number };

/** A connection, as the parser sees it. */
class Line {
  readonly socket: Socket;
  readonly name: string;
  readonly address: string;
  /** The last request that was parsed. */
  request: IncomingMessage | null = null;
  /** That request is not answered yet. */
  isBusy = false;
  /** Bytes of its body still to come; `Infinity` if it is chunked. */
  #bodyBytes = 0;
  #chunkedBytes = leastChunked;
  /** Bytes handed over together with a head and following it. */
  #behindHead = 0;
  /** The end of what was handed over, if an empty line may have begun there. */
  #end = '';
  /** Whoever reads the body asked to pause. */
  isPaused = false;
  isQueued = false;
  isReleased = false;
  /** Bytes received that may not be parsed yet. */
  held: Buffer | null = null;
  place: Reservation | null = null;
  /** Makes later reads of the socket larger. */
  readMore = (): void => {};
  /** Set once the client has sent something that is not HTTP. */
  refuse: (() => void) | null = null;

  constructor(socket: Socket, name: string) {
    this.socket = socket;
    this.name = name;
    this.address = network(plain(socket.remoteAddress ?? ''));
  }

  begins(request: IncomingMessage): void {
    const { headers } = request;
    const isChunked = headers['transfer-encoding'] !== undefined;
    this.request = request;
    this.isBusy = true;
    this.#bodyBytes = isChunked ? Infinity : Number(headers['content-length'] ?? 0);
    this.#chunkedBytes = leastChunked;
    if (isChunked) bufferAtMost(request, unreadBytes);
    if (this.#bodyBytes > this.#behindHead) this.readMore();
  }

  mayParse(): boolean {
    if (!this.socket.writable || this.isReleased || this.refuse) return false;
    if (this.request?.complete === false) return !this.isPaused;
    // Stop reading requests of a client that does not take its answers.
    return !this.isBusy && !this.socket.writableNeedDrain;
  }

  /** At most one request's head, or a piece of its body. */
  next(bytes: Buffer): Piece {
    if (this.request?.complete !== false) return this.#nextHead(bytes);
    if (this.#bodyBytes < Infinity) {
      const most = this.#bodyBytes > 0 ? this.#bodyBytes : bytes.length;
      return { length: Math.min(most, bytes.length), cost: 0 };
    }
    const some = bytes.subarray(0, this.#chunkedBytes);
    const end = this.#endOfLine(some);
    const length = end < 0 ? some.length : end;
    return { length, cost: chunkedCost(length) };
  }

  #nextHead(bytes: Buffer): Piece {
    const end = this.#endOfLine(bytes);
    const isAlone = bytes.length - end <= smallHeadBytes && bytes.indexOf(emptyLine, end) < 0;
    const length = end < 0 || isAlone ? bytes.length : end;
    this.#behindHead = length - end;
    return { length, cost: headCost(length) };
  }

  /** The index after the first empty line, which may have begun in bytes handed over before; -1 if there is none. */
  #endOfLine(bytes: Buffer): number {
    if (this.#end !== '') {
      const at = (this.#end + bytes.toString('latin1', 0, 3)).indexOf(emptyLine);
      if (at >= 0) return at + emptyLine.length - this.#end.length;
    }
    const at = bytes.indexOf(emptyLine);
    return at < 0 ? -1 : at + emptyLine.length;
  }

  hand(bytes: Buffer): void {
    const { request } = this;
    const last = bytes.at(-1);
    this.#end =
      last === 13 || last === 10 ? bytes.toString('latin1', Math.max(0, bytes.length - 3)) : '';
    if (request?.complete === false) {
      this.#bodyBytes -= bytes.length;
      this.#chunkedBytes = Math.min(2 * this.#chunkedBytes, mostChunked);
    }
    this.socket.emit('data', bytes);
    if (this.request !== request) this.#bodyBytes -= this.#behindHead;
    if (!this.isBusy) this.forget();
  }

  /** Lets a finished request be garbage-collected while its connection stays open. */
  forget(): void {
    if (this.request?.complete === true) this.request = null;
  }

  drop(): void {
    this.held = null;
    this.place?.leave();
    this.place = null;
  }
}

/** The socket's own methods, which `watch` overrides. */
const pause = (socket: Socket) => Socket.prototype.pause.call(socket);
const resume = (socket: Socket) => Socket.prototype.resume.call(socket);

type RequestSchedulerOptions = {
  /** The client's address or network. Called only for requests that wait. */
  addressOf: (request: IncomingMessage) => string;
  /** Paths that orchestrators ask: at each address they queue separately. */
  isVital: (path: string) => boolean;
  /** Requests started in one turn of the event loop. */
  mostPerTurn?: number;
  /** Bytes of larger bodies that arrive while their requests wait: of all clients; one address may use a quarter. */
  largeBytes?: number | undefined;
};

type RequestScheduler = {
  /**
   * Runs `go` now or when it is its turn. False: waiting requests already take too much memory, and `go` will not run.
   */
  start(request: IncomingMessage, go: () => void): boolean;
  countWaiting(): number;
};

/** Takes a few milliseconds, which delays MQTT messages and each step of other requests by as much. */
const usualPerTurn = 32;
const usualLargeBytes = 33_554_432;
/**
 * When this many requests wait, each client may ask again as soon as it is answered, and reading those requests alone
 * would take longer than anybody should wait. So the service pauses between them, which leaves half of the time to
 * others.
 */
const crowd = 512;
const crowdPauseMs = 4;
/** A request with a smaller body needs no memory budget: all connections together may wait with one each. */
const smallRequestBytes = 16_384;
/** The most that arrives of a body before its connection is no longer read. */
const mostArriving = 131_072;

/**
 * One turn of the event loop reads every connection that has data, and would start all of those requests before it does
 * anything else. So a turn starts a few, and the others wait. Addresses take turns, and so do the clients of one
 * address, however many connections each has.
 */
export function createRequestScheduler(options: RequestSchedulerOptions): RequestScheduler {
  const { addressOf, isVital, mostPerTurn = usualPerTurn, largeBytes = usualLargeBytes } = options;
  const budget = new MemoryBudget({
    maxBytes: largeBytes,
    share: 1 / 4,
    maxWaiting: 0,
    maxWaitingOfKey: 0,
  });
  const scheduler = new LoopScheduler({
    mostPerTurn,
    crowd: { size: crowd, pauseMs: crowdPauseMs },
  });

  function wait(request: IncomingMessage, go: () => void): boolean {
    const path = pathOf(request);
    const from = addressOf(request);
    const address = isVital(path) ? `${from} ${path}` : from;
    const bytes = arrivingBytes(request);
    const place = bytes > smallRequestBytes ? budget.enter(address, bytes) : undefined;
    if (place === null) return false;
    scheduler.wait({ address, who: whoOf(request) ?? path }, () => {
      place?.leave();
      go();
    });
    return true;
  }

  return {
    start(request, go) {
      if (!scheduler.takeNow()) return wait(request, go);
      go();
      return true;
    },
    countWaiting: () => scheduler.waiting,
  };
}

function arrivingBytes({ headers }: IncomingMessage): number {
  const isOpen = headers['transfer-encoding'] !== undefined;
  const announced = isOpen ? Infinity : Number(headers['content-length'] ?? 0);
  return Math.min(announced, mostArriving);
}

const pathOf = ({ url = '' }: IncomingMessage) => url.split('?', 1)[0] as string;

/** Tells the clients of one address apart by what they say themselves. */
const whoOf = ({ headers }: IncomingMessage) => headers.authorization ?? headers.cookie;

/**
 * Returns a function to call for each request. It ends the connection of a request that takes longer than `longestMs`
 * to arrive, as Node's `requestTimeout` would. Requests in `ownPace` are excepted: whoever reads them limits them.
 */
export function limitArrival(
  server: Server,
  longestMs: number,
  ownPace: WeakSet<IncomingMessage>,
): (response: ServerResponse) => void {
  /** Requests of this turn of the event loop. Most have arrived completely by its end, and need no timer. */
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

/** The error that Node itself would raise. */
const tooLate = () =>
  Object.assign(new Error('Request timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
