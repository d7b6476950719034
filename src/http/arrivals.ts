import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { network } from '../lib/address.ts';
import { MemoryBudget, type Reservation } from '../lib/memory-budget.ts';
import { LoopScheduler } from '../lib/event-loop.ts';
import { plain } from './answer.ts';
import { bufferAtMost, createSocketReads, readOn } from './socket-reads.ts';

export type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Starts a request, at once or later; false: it never will. */
type Start = (request: IncomingMessage, go: () => void) => boolean;

type OneByOneOptions = {
  handle: Handle;
  start: Start;
  /** Answers what was not started. */
  refuse: (response: ServerResponse) => void;
  /** Is told when a request of a connection is answered, and no other one has begun. */
  onIdle: (socket: Socket) => void;
  /** What connections may have sent ahead of its turn, in bytes: of all, and a quarter of it of one address. */
  aheadBytes?: number | undefined;
};

/** A streamed answer has ten: three of ours, and what Node's `pipeline` adds. Twice as many are a leak. */
const closeListeners = 20;

/** The end of a head, and of a body in chunks (RFC 9112 sections 2.1 and 7.1). */
const emptyLine = '\r\n\r\n';
/** A head with so much behind it is handed over at once where all of that belongs to it. */
const smallHeadBytes = 2_048;
/** Of a body in chunks, which may be of a byte each: ever more, as long as somebody reads it. */
const leastChunked = 1_024;
const mostChunked = 4_096;
/** Of a body in chunks that nobody reads yet. */
const unreadBytes = 256;
const usualAheadBytes = 67_108_864;

/**
 * Parsed in a turn of the event loop: about 100 small heads, and no longer than 2 ms of those that wait. One of 16 KiB
 * may have thousands of fields, and counts for 17; what comes in chunks may be thousands of pieces.
 */
const perTurn = 96;
const mostMs = 2;
const headCost = (bytes: number) => 1 + bytes / 1_024;
const chunkedCost = (bytes: number) => 1 + bytes / 256;

/**
 * Has a connection's requests parsed, and answered, one after the other. A client may write thousands at once
 * (RFC 9112 section 9.3.2), in 18 bytes each, and Node's parser makes a request and a response of every one. Here it is
 * given a request's bytes when the answer before it has left; until then they wait as they came, and the socket is not read.
 * Parsing takes turns by address too.
 */
export class OneByOne {
  readonly #options: OneByOneOptions;
  readonly #lines = new WeakMap<Socket, Line>();
  readonly #readThrough = createSocketReads();
  readonly #turns = new LoopScheduler({ perTurn, mostMs });
  readonly #ahead: MemoryBudget;
  #count = 0;

  constructor(options: OneByOneOptions) {
    const { aheadBytes: maxBytes = usualAheadBytes } = options;
    this.#options = options;
    this.#ahead = new MemoryBudget({ maxBytes, share: 1 / 4, maxWaiting: 0, maxWaitingOfKey: 0 });
  }

  /** Connections with something that may be parsed, and waits for its turn. */
  get waiting(): number {
    return this.#turns.waiting;
  }

  /** Whether a request of the connection is under way. */
  isBusy(socket: Socket): boolean {
    return this.#lines.get(socket)?.isBusy ?? false;
  }

  /**
   * Whether the connection may be closed for another client's: nothing is under way on it; where that `isUrgent`, also
   * one whose client has not sent all of a request, sends more before it is answered, or does not take its answer.
   */
  mayGo(socket: Socket, isUrgent: boolean): boolean {
    const line = this.#lines.get(socket);
    if (!line || line.isReleased) return false;
    const isIdle = !line.isBusy && line.held === null;
    if (isIdle || !isUrgent) return isIdle;
    return !line.isBusy || line.request?.complete === false || socket.writableNeedDrain;
  }

  /** Is to see each connection before node:http does. */
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
      // Not from within the parser, which may have asked for it.
      this.#ask(line);
      return socket;
    };
  }

  /** Has a request that was parsed answered in its turn, by `handle` where nothing else is said. */
  add(request: IncomingMessage, response: ServerResponse, handle = this.#options.handle): void {
    const { socket } = request;
    if (socket.destroyed) return;
    const line = this.#lineOf(socket);
    line.begins(request);
    response.setMaxListeners(closeListeners);
    // It is emitted once: without `once` there is nothing to wrap, and to remove.
    response.on('close', () => this.#answered(line));
    const go = (): void => {
      if (!socket.destroyed) handle(request, response);
    };
    if (!this.#options.start(request, go)) this.#options.refuse(response);
  }

  /**
   * What came is no HTTP: `refuse` says so, behind the answer of a request that came whole before it. One that is broken
   * itself has no other answer.
   */
  fail(socket: Socket, refuse: () => void): void {
    const line = this.#lines.get(socket);
    if (!line?.isBusy || !line.request?.complete) return refuse();
    line.refuse = refuse;
    line.drop();
  }

  /** The connection is no longer one of HTTP: from now on it is read as any other. */
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

  /** Has it wait for its turn, where that is all that it waits for. */
  #ask(line: Line): void {
    if (line.held === null || line.isQueued || !line.mayParse()) return;
    line.isQueued = true;
    this.#turns.wait({ address: line.address, who: line.name }, () => this.#takeTurn(line));
  }

  #takeTurn(line: Line): number {
    const { socket, held } = line;
    line.isQueued = false;
    if (held === null || socket.destroyed) return 0;
    const turn = { cost: 0 };
    const parsed = this.#parse(line, held, turn);
    if (line.held === null) return turn.cost;
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
    return turn.cost;
  }

  #handOn(line: Line, rest: Buffer): void {
    line.drop();
    if (rest.length > 0) line.socket.push(rest);
    readOn(line.socket);
  }

  /**
   * Hands over what may be parsed now, and gives how much that was. `turn`: it is this line's turn, for one piece that
   * costs something; without, it takes what is left of the present turn of the loop.
   */
  #parse(line: Line, bytes: Buffer, turn?: { cost: number }): number {
    let parsed = 0;
    while (parsed < bytes.length && line.mayParse()) {
      const rest = bytes.subarray(parsed);
      const { length, cost } = line.next(rest);
      if (cost > 0) {
        if (turn ? turn.cost > 0 : !this.#turns.takeNow(cost)) break;
        if (turn) turn.cost = cost;
      }
      line.hand(rest.subarray(0, length));
      parsed += length;
    }
    return parsed;
  }
}

/** How much may be handed over at once, and what it costs at most. */
type Piece = { length: number; cost: number };

/** A connection, from the parser's point of view. */
class Line {
  readonly socket: Socket;
  readonly name: string;
  readonly address: string;
  /** The last one that was parsed. */
  request: IncomingMessage | null = null;
  /** That one is not answered. */
  isBusy = false;
  /** What is still to come of its body; `Infinity` in chunks. */
  #bodyBytes = 0;
  #chunkedBytes = leastChunked;
  /** What is handed over together with a head, and stands behind it. */
  #behindHead = 0;
  /** The end of what was handed over, where an empty line may have begun. */
  #end = '';
  /** Whoever reads the body has enough for now. */
  isPaused = false;
  isQueued = false;
  isReleased = false;
  /** What came and may not be parsed yet. */
  held: Buffer | null = null;
  place: Reservation | null = null;
  /** Has more of the socket read at once. */
  readMore = (): void => {};
  /** Set once what came is no HTTP. */
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
    // A client that does not take its answers is asked for nothing more.
    return !this.isBusy && !this.socket.writableNeedDrain;
  }

  /** One request's head at most, or a piece of its body. */
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

  /** Behind the first empty line, which may have begun in what was handed over before; -1 where there is none. */
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

  /** What is over is garbage, however long its connection stays. */
  forget(): void {
    if (this.request?.complete === true) this.request = null;
  }

  drop(): void {
    this.held = null;
    this.place?.leave();
    this.place = null;
  }
}

/** The socket's own, beneath what `watch` puts before them. */
const pause = (socket: Socket) => Socket.prototype.pause.call(socket);
const resume = (socket: Socket) => Socket.prototype.resume.call(socket);

type RequestSchedulerOptions = {
  /** The client's address, or its network. Asked for of those that wait only. */
  addressOf: (request: IncomingMessage) => string;
  /** What orchestrators ask: these have turns of their own at an address. */
  isVital: (path: string) => boolean;
  /** Requests that start in a turn of the event loop. */
  perTurn?: number;
  /** What arrives of larger bodies while they wait: of all, and a quarter of it of one address. */
  largeBytes?: number;
};

type RequestScheduler = {
  /** Runs `go`, at once or when its turn has come. False: what waits takes too much memory already, and it will not run. */
  start(request: IncomingMessage, go: () => void): boolean;
  countWaiting(): number;
};

/** A small multiple of a millisecond: so late are messages over MQTT, and each step of any other request. */
const usualPerTurn = 32;
const usualLargeBytes = 33_554_432;
/**
 * Each of so many that wait may ask again as soon as it is answered, and only to read that takes longer than anybody
 * should wait: they are answered at a pace that leaves half of the time to others.
 */
const crowd = 512;
const crowdPauseMs = 4;
/** As many as there may be connections can wait with smaller ones. */
const smallRequestBytes = 16_384;
/** So much of a body arrives at most before its connection is read no further. */
const mostArriving = 131_072;

/**
 * A turn of the event loop reads from every connection that has something to read, and would start all of these
 * requests before anybody else is looked after. So a few start in a turn, and the others wait: addresses take turns,
 * and whoever asks at an address does, however many connections each of them has.
 */
export function createRequestScheduler(options: RequestSchedulerOptions): RequestScheduler {
  const { addressOf, isVital, perTurn = usualPerTurn, largeBytes = usualLargeBytes } = options;
  const budget = new MemoryBudget({
    maxBytes: largeBytes,
    share: 1 / 4,
    maxWaiting: 0,
    maxWaitingOfKey: 0,
  });
  const turns = new LoopScheduler({ perTurn, crowd: { size: crowd, pauseMs: crowdPauseMs } });

  function wait(request: IncomingMessage, go: () => void): boolean {
    const path = pathOf(request);
    const from = addressOf(request);
    const address = isVital(path) ? `${from} ${path}` : from;
    const bytes = arrivingBytes(request);
    const place = bytes > smallRequestBytes ? budget.enter(address, bytes) : undefined;
    if (place === null) return false;
    turns.wait({ address, who: whoOf(request) ?? path }, () => {
      place?.leave();
      go();
    });
    return true;
  }

  return {
    start(request, go) {
      if (!turns.takeNow()) return wait(request, go);
      go();
      return true;
    },
    countWaiting: () => turns.waiting,
  };
}

function arrivingBytes({ headers }: IncomingMessage): number {
  const isOpen = headers['transfer-encoding'] !== undefined;
  const announced = isOpen ? Infinity : Number(headers['content-length'] ?? 0);
  return Math.min(announced, mostArriving);
}

const pathOf = ({ url = '' }: IncomingMessage) => url.split('?', 1)[0] as string;

/** Of those behind one address, as they say themselves. */
const whoOf = ({ headers }: IncomingMessage) => headers.authorization ?? headers.cookie;

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
