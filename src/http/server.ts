import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createNetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { DomainError } from '../errors.ts';
import { network } from '../lib/address.ts';
import { type ConnectionPlace, ConnectionPlaces } from '../lib/connection-places.ts';
import { listenTogether } from '../lib/servers.ts';
import { plain, trustProxies, trusts } from './answer.ts';
import { type AppOptions, createApp, crossOriginDevices } from './app.ts';
import { createRequestScheduler, type Handle, limitArrival, OneByOne } from './arrivals.ts';
import { toAnswer } from './errors.ts';
import type { WallMs } from '../lib/clock-readings.ts';

type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

export type HttpOptions = AppOptions & {
  host: string;
  /** 0 for any free port. */
  port: number;
  /** Handlers of upgraded connections, by path. */
  upgrades?: Record<string, Upgrade>;
  /** Answers requests whose path begins with `prefix`, before any route sees them. */
  inFront?: { prefix: string; handle: Handle };
  /** How long a client may take to send its headers. */
  headersTimeoutMs?: number;
  /** How long a client may take to send a whole request. Routes that stream a body have a limit of their own. */
  requestTimeoutMs?: number;
  /** Open connections, of all clients and of one address. */
  connections?: number;
  connectionsPerAddress?: number;
  /** The connection places that HTTP and MQTT share in this process. They replace the limit `connections`. */
  places?: ConnectionPlaces;
  /** Bytes that connections may send before they can be parsed; one address may use a quarter; 64 MiB. */
  aheadBytes?: number;
  /** Bytes of larger bodies that arrive while their requests wait; one address may use a quarter; 32 MiB. */
  largeBytes?: number;
};

export type HttpServer = {
  port: number;
  /** Requests that have arrived but not begun. */
  countWaiting(): number;
  /**
   * Stops accepting, ends streams, finishes requests under way within `drainMs`, then closes the remaining connections.
   */
  close(drainMs?: number): Promise<void>;
};

/** Serves the routes. Rejects if it cannot listen at the address. */
export async function startHttp(options: HttpOptions): Promise<HttpServer> {
  const { headersTimeoutMs = 10_000, requestTimeoutMs = 30_000 } = options;
  const { connections = 20_000, connectionsPerAddress = 2_000, trustedProxies = [] } = options;
  const { upgrades = {}, clock } = options;
  const stop = new AbortController();
  const ownPace = new WeakSet<IncomingMessage>();
  const answer = createApp(options, stop.signal, ownPace).callback();
  const { inFront } = options;
  const isPreflight = crossOriginDevices(options.corsOrigins ?? []);
  const handle: Handle = (request, response) => {
    if (!namesItsHost(request)) refuseHost(response, clock());
    else if (!inFront || !request.url?.startsWith(inFront.prefix)) void answer(request, response);
    else if (!isPreflight(request, response)) inFront.handle(request, response);
  };
  const sockets = watchIdleSockets();
  const findAddress = trustProxies(trustedProxies);
  const vital = new Set(options.routes.filter(({ isVital }) => isVital).map(({ path }) => path));
  const scheduler = createRequestScheduler({
    isVital: (path) => vital.has(path),
    largeBytes: options.largeBytes,
    addressOf: ({ socket, headers }) =>
      network(findAddress(socket.remoteAddress ?? '', String(headers['x-forwarded-for'] ?? ''))),
  });
  const requests = new OneByOne({
    handle,
    start: scheduler.start,
    refuse: (response) => refuseAtOnce(response, clock()),
    onIdle: sockets.idle,
    aheadBytes: options.aheadBytes,
  });
  const upgradeOf = (request: IncomingMessage) => {
    normalizeTarget(request);
    const path = pathOf(request);
    return Object.hasOwn(upgrades, path) ? upgrades[path] : undefined;
  };
  const server = createServer({
    headersTimeout: headersTimeoutMs,
    // Node has one limit for all requests; `limitArrival` replaces it.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1_000, headersTimeoutMs),
    keepAliveTimeout: 60_000,
    // Otherwise Node would answer by itself, out of order.
    requireHostHeader: false,
    // Other upgrades (curl offers h2c) are ignored, and the request is answered normally.
    shouldUpgradeCallback: (request) =>
      request.headers.upgrade?.toLowerCase() === 'websocket' || upgradeOf(request) !== undefined,
  });
  // A client that half-closes still wants its answer (RFC 9112 section 9.6). By default Node hangs up.
  Object.assign(server, { httpAllowHalfOpen: true });
  const limit = limitArrival(server, requestTimeoutMs, ownPace);
  const take = (request: IncomingMessage, response: ServerResponse, how?: Handle) => {
    normalizeTarget(request);
    limit(response);
    requests.add(request, response, how);
  };
  // Before node:http sees the connection.
  server.prependListener('connection', (socket) => requests.watch(socket));
  sockets.watch(server);
  limitConnections(server, {
    connections,
    connectionsPerAddress,
    trustedProxies,
    places: options.places,
    mayGo: (socket, isUrgent) => requests.mayGo(socket, isUrgent),
  });
  server.on('request', (request, response) => take(request, response));
  server.on('checkContinue', (request, response) =>
    take(request, response, () => {
      response.writeContinue();
      handle(request, response);
    }),
  );
  server.on('checkExpectation', (request, response) =>
    take(request, response, () => refuseExpectation(response, clock())),
  );
  server.on('upgrade', (request, socket, head) => {
    requests.release(request.socket);
    const upgrade = upgradeOf(request);
    // Copied, because what followed the request was read into the shared buffer.
    const isAddressed = namesItsHost(request);
    if (upgrade && isAddressed) upgrade(request, socket, Buffer.from(head));
    else refuseUpgrade(socket, isAddressed, clock());
  });
  server.on('connect', (request, socket) => {
    requests.release(request.socket);
    refuseConnect(socket, clock());
  });
  server.on('clientError', (error, socket) =>
    requests.fail(socket as Socket, () => refuseConnection(error, socket, clock())),
  );
  const listening = await listen(server, options.host, options.port);
  return {
    port: listening.port,
    countWaiting: () => requests.waiting + scheduler.countWaiting(),
    close: async (drainMs = 8_000) => {
      stop.abort();
      const closed = close(server, listening, drainMs);
      sockets.closeIdle((socket) => requests.isBusy(socket));
      await closed;
    },
  };
}

const pathOf = (request: IncomingMessage) => request.url?.split('?', 1)[0] ?? '';

async function close(server: Server, listening: HttpListener, drainMs: number): Promise<void> {
  const timer = setTimeout(() => server.closeAllConnections(), drainMs);
  await listening.close();
  clearTimeout(timer);
}

const slash = 47;
const absoluteForm = /^https?:\/\/([^/?#]+)/i;
const escapedUnreserved = /%(2D|2E|5F|7E|3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A])/gi;

/**
 * Normalizes a request's target. An absolute target becomes its path, and its host the request's host (RFC 9112 section
 * 3.2.2). Escaped letters, digits, `-`, `.`, `_` and `~` in the path are decoded (RFC 3986 section 6.2.2.2).
 */
function normalizeTarget(request: IncomingMessage): void {
  const { url = '' } = request;
  if (url.charCodeAt(0) === slash && !url.includes('%')) return;
  const absolute = absoluteForm.exec(url);
  if (absolute) request.headers.host = absolute[1];
  const target = absolute ? url.slice(absolute[0].length) : url;
  const queryAt = target.indexOf('?');
  const pathEnd = queryAt < 0 ? target.length : queryAt;
  const path = target
    .slice(0, pathEnd)
    .replace(escapedUnreserved, (escape) => decodeURIComponent(escape));
  request.url = (absolute && !path.startsWith('/') ? `/${path}` : path) + target.slice(pathEnd);
}

/** Whether there is exactly one `Host`. HTTP/1.0 may leave it out (RFC 9112 section 3.2). */
function namesItsHost({ rawHeaders, httpVersionMinor, httpVersionMajor }: IncomingMessage) {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts += 1;
  }
  return hosts === 1 || (hosts === 0 && httpVersionMajor === 1 && httpVersionMinor === 0);
}

/** Answers a request that Node could not parse, or that took too long, in the form of every other error. */
function refuseConnection(error: Error & { code?: string }, socket: Duplex, nowTs: WallMs) {
  if (!socket.writable || error.code === 'ECONNRESET') return socket.destroy();
  if (error.code === 'HPE_HEADER_OVERFLOW')
    return refuse(socket, 431, 'The request line and the headers are larger than 16 KiB', nowTs);
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return refuse(socket, 408, 'The request took too long to arrive', nowTs);
  }
  return refuse(socket, 400, 'This is not HTTP according to RFC 9112', nowTs);
}

/** `isAddressed`: the request has its one `Host`. */
function refuseUpgrade(socket: Duplex, isAddressed: boolean, nowTs: WallMs) {
  socket.on('error', () => socket.destroy());
  if (isAddressed) return refuse(socket, 404, 'There is no such resource', nowTs);
  return refuse(socket, 400, oneHost, nowTs);
}

/** Answers a request for which there is no memory to wait, and ends its connection. Nothing more is read of it. */
function refuseAtOnce(response: ServerResponse, nowTs: WallMs): void {
  const detail = 'Too many large requests are waiting already: try again later.';
  const error = new DomainError('unavailable', detail, { retryAfterSeconds: 2 });
  sendRefusal(response, error, nowTs);
}

/** RFC 9112 section 3.2: a request without `Host`, or with two, might be meant for another server. */
function refuseHost(response: ServerResponse, nowTs: WallMs): void {
  sendRefusal(response, of(400, oneHost), nowTs);
}

/** RFC 9110 section 10.1.1. */
function refuseExpectation(response: ServerResponse, nowTs: WallMs): void {
  sendRefusal(response, of(417, 'The only supported expectation is 100-continue'), nowTs);
}

/** RFC 9110 section 9.3.6. */
function refuseConnect(socket: Duplex, nowTs: WallMs) {
  socket.on('error', () => socket.destroy());
  return refuse(socket, 405, 'This service is not a proxy and does not support CONNECT', nowTs);
}

/** Answers a request that no route sees, and ends its connection. */
function sendRefusal(response: ServerResponse, error: Error, nowTs: WallMs): void {
  const { status, headers, body } = toAnswer(error, randomUUID(), nowTs);
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
  });
  response.end(JSON.stringify(body));
}

const oneHost = 'Expected one Host header (RFC 9112 section 3.2)';
const of = (status: number, detail: string) => Object.assign(new Error(detail), { status });

function refuse(socket: Duplex, status: number, detail: string, nowTs: WallMs): Duplex {
  const body = JSON.stringify(toAnswer(of(status, detail), randomUUID(), nowTs).body);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ];
  return socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => linger(socket));
}

/**
 * The connection stays open for a moment. Closing it with unread bytes would reset it, and the client might lose the
 * answer (RFC 9112 section 9.6). The delay also bounds clients that try again at once: 400 connections make 800
 * requests a second.
 */
const lingerMs = 500;
const mostLingering = 1_000;
const lingering = new Set<Duplex>();

function linger(socket: Duplex): void {
  if (socket.destroyed) return;
  if (lingering.size >= mostLingering) return void socket.destroy();
  lingering.add(socket);
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => {
    clearTimeout(timer);
    lingering.delete(socket);
  });
}

type IdleSockets = {
  /** Closes connections without a request under way: idle ones now, the others as soon as they become idle. */
  closeIdle(isBusy: (socket: Socket) => boolean): void;
  /** Call it when the socket's last request is answered. */
  idle(socket: Socket): void;
};

/**
 * Keeps track of the open connections. (Node's own `closeIdleConnections` omits those that have not sent anything yet,
 * and looks only once.) Upgraded connections are not watched.
 */
function watchIdleSockets(): IdleSockets & { watch(server: Server): void } {
  const open = new Set<Socket>();
  let isClosing = false;
  return {
    watch(server) {
      server.on('connection', (socket) => {
        open.add(socket);
        socket.once('close', () => open.delete(socket));
        if (isClosing) socket.destroySoon();
      });
      server.on('upgrade', ({ socket }) => open.delete(socket));
    },
    idle(socket) {
      if (isClosing) socket.destroySoon();
    },
    closeIdle(isBusy) {
      isClosing = true;
      for (const socket of open) if (!isBusy(socket)) socket.destroy();
    },
  };
}

type ConnectionLimits = {
  /** Open connections of all clients, if there are no `places`. */
  connections: number;
  /** Open connections per address (IPv6: a /64). Trusted proxies have no such limit. */
  connectionsPerAddress: number;
  trustedProxies: string[];
  /** Shared with the other listeners of this process. */
  places?: ConnectionPlaces | undefined;
  /** Whether a connection may be closed to make room for another client (`OneByOne.mayGo`). */
  mayGo: (socket: Socket, isUrgent: boolean) => boolean;
};

/**
 * Closes a connection beyond the limits as soon as it is accepted and before anything is read: each costs memory and a
 * file descriptor for as long as its client likes. If all places are taken, idle connections make way
 * (`ConnectionPlaces`). An upgraded connection is no longer counted here.
 */
function limitConnections(server: Server, limits: ConnectionLimits): void {
  const { connections, connectionsPerAddress, mayGo } = limits;
  const isTrusted = trusts(limits.trustedProxies);
  const places =
    limits.places ??
    new ConnectionPlaces({
      most: connections,
      kept: 0,
      ofListener: { http: connections, mqtt: 0 },
    });
  const open = new Map<Socket, { from: string; place: ConnectionPlace }>();
  const byNetwork = new Map<string, number>();

  const release = (socket: Socket) => {
    const had = open.get(socket);
    if (had === undefined) return;
    open.delete(socket);
    had.place.leave();
    const left = (byNetwork.get(had.from) ?? 1) - 1;
    if (left > 0) byNetwork.set(had.from, left);
    else byNetwork.delete(had.from);
  };

  server.on('connection', (socket) => {
    const address = plain(socket.remoteAddress ?? '');
    const from = network(address);
    const count = byNetwork.get(from) ?? 0;
    const isTooMany = count >= connectionsPerAddress && !isTrusted(address);
    if (isTooMany) return void socket.destroy();
    const place = places.enter('http', address, {
      socket,
      mayGo: (isUrgent) => mayGo(socket, isUrgent),
    });
    if (!place) return void socket.destroy();
    open.set(socket, { from, place });
    byNetwork.set(from, (byNetwork.get(from) ?? 0) + 1);
    socket.once('close', () => release(socket));
  });
  server.on('upgrade', (request: IncomingMessage) => release(request.socket));
}

/**
 * The number of listening sockets, and so of connections accepted per turn of the event loop. One per turn would be too
 * few: a client's burst would keep others waiting to be accepted. With 16, a device that opens a connection for each
 * message waited for up to a second beside 2,000 new connections a second; with 64 a turn took too long for everybody
 * else.
 */
const sockets = 32;
/** The backlog of each socket. The kernel may allow less (`net.core.somaxconn`). */
const backlog = 256;

type HttpListener = {
  port: number;
  /** Stops accepting, and resolves when all connections have ended. */
  close(): Promise<void>;
};

/** Rejects if it cannot listen at the address. Port 0: any free one. */
async function listen(server: Server, host: string, port: number): Promise<HttpListener> {
  const further = Array.from({ length: sockets - 1 }, () => createFurther(server));
  const had = await listenTogether([server, ...further], { host, port, backlog });
  const listening = [server, ...further].filter((each) => each.listening);
  return {
    port: had,
    close: async () => {
      await Promise.all(listening.map((each) => once(each.close(), 'close')));
    },
  };
}

/** Same options as node:http's own socket: half open, and without delay. */
const createFurther = (server: Server) =>
  createNetServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    server.emit('connection', socket),
  );
