import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { network } from '../lib/network.ts';
import { trustProxies } from './address.ts';
import { type AppOptions, createApp } from './app.ts';
import { limitArrival } from './arrival-limit.ts';
import { limitConnections } from './connection-limits.ts';
import { watchIdleSockets } from './idle-sockets.ts';
import { listen, type HttpListener } from './listen.ts';
import { oneByOne, type Handle } from './one-by-one.ts';
import { createRequestTurns } from './request-turns.ts';
import { refuseAtOnce, refuseConnection, refuseUpgrade } from './refuse.ts';

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
  const answer = createApp(options, stop.signal, ownPace).callback();
  const { inFront } = options;
  const handle: Handle = (request, response) => {
    if (inFront && request.url?.startsWith(inFront.prefix)) inFront.handle(request, response);
    else void answer(request, response);
  };
  const sockets = watchIdleSockets();
  const findAddress = trustProxies(trustedProxies);
  const vital = new Set(options.routes.filter(({ isVital }) => isVital).map(({ path }) => path));
  const turns = createRequestTurns({
    isVital: (path) => vital.has(path),
    addressOf: ({ socket, headers }) =>
      network(findAddress(socket.remoteAddress ?? '', String(headers['x-forwarded-for'] ?? ''))),
  });
  const requests = oneByOne({
    handle,
    start: turns.start,
    refuse: (response) => refuseAtOnce(response, clock()),
    onIdle: sockets.idle,
  });
  const pathOf = (request: IncomingMessage) => request.url?.split('?', 1)[0] ?? '';
  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      // Node knows one limit for all requests: `limitArrival` has it.
      requestTimeout: 0,
      connectionsCheckingInterval: Math.min(1_000, headersTimeoutMs),
      keepAliveTimeout: 60_000,
      // Anything else (curl offers h2c) is answered as if it had not asked.
      shouldUpgradeCallback: (request) =>
        request.headers.upgrade?.toLowerCase() === 'websocket' ||
        Object.hasOwn(upgrades, pathOf(request)),
    },
    requests.handle,
  );
  // A client that has said all of it still wants its answer (RFC 9112 section 9.6); Node's own way is to hang up.
  Object.assign(server, { httpAllowHalfOpen: true });
  sockets.watch(server);
  limitArrival(server, requestTimeoutMs, ownPace);
  limitConnections(server, { connections, connectionsPerAddress, trustedProxies });
  server.on('upgrade', (request, socket, head) => {
    const upgrade = Object.hasOwn(upgrades, pathOf(request))
      ? upgrades[pathOf(request)]
      : undefined;
    if (upgrade) upgrade(request, socket, head);
    else refuseUpgrade(socket, clock());
  });
  server.on('clientError', (error, socket) => refuseConnection(error, socket, clock()));
  const listening = await listen(server, options.host, options.port);
  return {
    port: listening.port,
    countWaiting: turns.countWaiting,
    close: async (drainMs = 8_000) => {
      stop.abort();
      const closed = close(server, listening, drainMs);
      sockets.closeIdle(requests.isBusy);
      await closed;
    },
  };
}

async function close(server: Server, listening: HttpListener, drainMs: number): Promise<void> {
  const timer = setTimeout(() => server.closeAllConnections(), drainMs);
  await listening.close();
  clearTimeout(timer);
}
