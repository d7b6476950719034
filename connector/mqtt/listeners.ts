import type { IncomingMessage } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import { createWebSocketStream, WebSocketServer } from 'ws';
import { listenTogether } from '../../src/lib/listen-together.ts';
import type { Admission, Admitted } from './admission.ts';
import { watchCertificate, type WatchedCertificate } from './certificate.ts';
import type { Listen, Log, TlsListen } from '../options.ts';
import { takeToll } from './frame-toll.ts';
import { plainAddress } from './proxied-address.ts';
import { takeProxyHeader } from './proxy-protocol.ts';

export type ListenerDeps = {
  admission: Admission;
  /** Takes a byte stream that MQTT is spoken on. */
  handle: (stream: Duplex, entry: Admitted, request?: IncomingMessage) => void;
  log: Log;
  handshakeTimeoutMs: number;
  maxPacketBytes: number;
  /** Whether a peer is a proxy, which says in front of everything whom it speaks for. */
  isProxy: (socket: Socket) => boolean;
  /** ms, of a clock that nobody sets. */
  now: () => number;
};

export type Listener = { port: number; close: () => Promise<void> };
export type TlsListener = Listener & { certificate: Omit<WatchedCertificate, 'close'> };

/** Small, so that a socket that may not be read holds little of what it was sent. */
const highWaterMark = 16_384;
/** Nothing is read before its turn has come; then aedes asks for it. */
const serverOptions = { pauseOnConnect: true, noDelay: true, keepAlive: true, highWaterMark };
/** A flood of strangers must not have devices wait to be accepted: their turn is `admission`'s to give. */
const sockets = 16;
/**
 * Of each of them. A fleet that comes back at once waits in the kernel rather than being refused, and so do connections
 * that were reset before they were accepted: a longer queue is a longer wait.
 */
const backlog = 256;

export async function listenTcp(listen: Listen, deps: ListenerDeps): Promise<Listener> {
  return startListening(listen, (socket) => {
    behindProxy(socket, deps, (address) =>
      deps.admission.offer(socket, address, (entry) => deps.handle(socket, entry)),
    );
  });
}

/** The certificate is read again when its files change; connections that are open stay open. */
export async function listenTls(listen: TlsListen, deps: ListenerDeps): Promise<TlsListener> {
  /** By the peer: the socket of TLS is another one than that which was let through. */
  const entries = new Map<string, Admitted>();
  const secure = createTlsServer(
    { handshakeTimeout: deps.handshakeTimeoutMs, highWaterMark },
    (socket) => {
      const entry = entries.get(peerOf(socket));
      if (entry) deps.handle(socket, entry);
      else socket.destroy();
    },
  );
  secure.on('tlsClientError', (_error, socket) => socket.destroy());
  const certificate = await watchCertificate(listen, deps.log, (context) =>
    secure.setSecureContext(context),
  );
  // Its turn comes before the handshake, which is what costs.
  const onConnection = (socket: Socket) => {
    behindProxy(socket, deps, (address) =>
      deps.admission.offer(socket, address, (entry) => {
        const name = peerOf(socket);
        entries.set(name, entry);
        socket.once('close', () => entries.delete(name));
        // Where the header was taken it is read already, and what followed must wait for TLS.
        if (!deps.isProxy(socket)) socket.resume();
        secure.emit('connection', socket);
      }),
    );
  };
  const listener = await startListening(listen, onConnection).catch((error: unknown) => {
    certificate.close();
    throw error;
  });
  const close = async () => {
    certificate.close();
    await listener.close();
  };
  return { port: listener.port, close, certificate };
}

/** A proxy names its client before anything else; until it has, nobody knows whose turn it is. */
function behindProxy(socket: Socket, deps: ListenerDeps, enter: (address: string) => void): void {
  const peer = plainAddress(socket.remoteAddress);
  if (!deps.isProxy(socket)) return enter(peer);
  socket.on('error', () => socket.destroy());
  takeProxyHeader(socket, deps.handshakeTimeoutMs, (address) => enter(address ?? peer));
}

const peerOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;

async function startListening(
  { host, port }: Listen,
  onConnection: (socket: Socket) => void,
): Promise<Listener> {
  const open = () => createServer(serverOptions, onConnection);
  const servers: [Server, ...Server[]] = [open(), ...Array.from({ length: sockets - 1 }, open)];
  const had = await listenTogether(servers, { host, port, backlog });
  const close = async () => {
    for (const server of servers) if (server.listening) server.close();
  };
  return { port: had, close };
}

export type WebSocketListener = {
  accept: (request: IncomingMessage, socket: Duplex, head: Buffer, address?: string) => void;
};

/** What is read at once has ten thousand frames: as dear as so many refused logins, and its address waits as for these. */
const logins = 20;

/** MQTT over WebSocket, MQTT 3.1.1 section 6, on upgrades that somebody else's HTTP server hands over. */
export function createWebSocketListener(deps: ListenerDeps): WebSocketListener {
  const maxPayload = deps.maxPacketBytes * 2;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    // What has come of one connection is taken apart over many turns of the event loop.
    allowSynchronousEvents: false,
    maxPayload,
    // Answered as far as the toll goes.
    autoPong: false,
    handleProtocols: (offered) => ['mqtt', 'mqttv3.1'].find((name) => offered.has(name)) ?? false,
  });
  const entries = new WeakMap<IncomingMessage, Admitted>();
  server.on('connection', (socket, request) => {
    const entry = entries.get(request);
    takeToll(
      { webSocket: socket, socket: request.socket },
      {
        now: deps.now,
        maxMessageBytes: maxPayload,
        onExceeded: () => entry?.refused(logins),
      },
    );
    // [MQTT-6.0.0-1]
    socket.on('message', (_data, isBinary) => {
      if (!isBinary) socket.terminate();
    });
    const stream = createWebSocketStream(socket, {
      readableHighWaterMark: highWaterMark,
      writableHighWaterMark: highWaterMark,
    });
    stream.on('error', () => stream.destroy());
    if (entry) deps.handle(stream, entry, request);
    else stream.destroy();
  });
  return {
    accept(request, socket, head, address = plainAddress(request.socket.remoteAddress)) {
      deps.admission.offer(socket, address, (entry) => {
        entries.set(request, entry);
        server.handleUpgrade(request, socket, head, (open) =>
          server.emit('connection', open, request),
        );
      });
    },
  };
}
