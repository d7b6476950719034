import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { ConnectionPlaces } from '../lib/connection-places.ts';
import { network } from '../lib/network.ts';
import { trustProxies } from './address.ts';
import { type AppOptions, createApp } from './app.ts';
import { limitArrival } from './arrival-limit.ts';
import { limitConnections } from './connection-limits.ts';
import { crossOriginDevices } from './headers.ts';
import { watchIdleSockets } from './idle-sockets.ts';
import { listen, type HttpListener } from './listen.ts';
import { type Handle, OneByOne } from './arrivals.ts';
import { createRequestTurns } from './request-turns.ts';
import {
  refuseAtOnce,
  refuseConnect,
  refuseConnection,
  refuseExpectation,
  refuseHost,
  refuseUpgrade,
} from './refuse.ts';
import { namesItsHost, normalizeTarget } from './target.ts';

export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

export type HttpOptions = AppOptions & {
  host: string;
  /** 0 for any free one. */
  port: number;
  /** Who takes over a connection that asks for an upgrade, by path. */
  upgrades?: Record<string, Upgrade>;
  /** Who answers requests whose path begins so, before anything else sees them. */
  inFront?: { prefix: string; handle: Handle };
  /** How long a client may take to send its headers. */
  headersTimeoutMs?: number;
  /** How long a client may take to send all of its request; routes that take a body as it comes have another limit. */
  requestTimeoutMs?: number;
  /** Connections open at once, of all clients and of one address. */
  connections?: number;
  connectionsPerAddress?: number;
  /** The places of the process, of which MQTT has others; they bound `connections` in its stead. */
  places?: ConnectionPlaces;
  /** What connections may send ahead of their turn, in bytes: of all, and a quarter of it of one address; 64 MiB. */
  aheadBytes?: number;
};

export type HttpServer = {
  port: number;
  /** Requests that have come and were not begun yet. */
  countWaiting(): number;
  /** Accepts no more, ends streams, finishes what is under way within `drainMs`, then closes what is left. */
  close(drainMs?: number): Promise<void>;
};

/** Serves the routes. Rejects when the address cannot be had. */
export async function startHttp(options: HttpOptions): Promise<HttpServer> {
  const { headersTimeoutMs = 10_000, requestTimeoutMs = 30_000 } = options;
  const { connections = 20_000, connectionsPerAddress = 2_000, trustedProxies = [] } = options;
  const { upgrades = {}, clock } = options;
  const stop = new AbortController();
  const ownPace = new WeakSet<IncomingMessage>();
  const onLogin = ({ socket }: IncomingMessage) => options.places?.know(socket);
  const answer = createApp({ onLogin, ...options }, stop.signal, ownPace).callback();
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
  const turns = createRequestTurns({
    isVital: (path) => vital.has(path),
    addressOf: ({ socket, headers }) =>
      network(findAddress(socket.remoteAddress ?? '', String(headers['x-forwarded-for'] ?? ''))),
  });
  const requests = new OneByOne({
    handle,
    start: turns.start,
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
    // Node knows one limit for all requests: `limitArrival` has it.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(1_000, headersTimeoutMs),
    keepAliveTimeout: 60_000,
    // What Node would answer itself is answered in turn, as everything else.
    requireHostHeader: false,
    // Anything else (curl offers h2c) is answered as if it had not asked.
    shouldUpgradeCallback: (request) =>
      request.headers.upgrade?.toLowerCase() === 'websocket' || upgradeOf(request) !== undefined,
  });
  // A client that has said all of it still wants its answer (RFC 9112 section 9.6); Node's own way is to hang up.
  Object.assign(server, { httpAllowHalfOpen: true });
  const limit = limitArrival(server, requestTimeoutMs, ownPace);
  const take = (request: IncomingMessage, response: ServerResponse, how?: Handle) => {
    normalizeTarget(request);
    limit(response);
    requests.add(request, response, how);
  };
  // Before node:http sees it.
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
    // What came behind it was read into the buffer of all.
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
    countWaiting: () => requests.waiting + turns.countWaiting(),
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
