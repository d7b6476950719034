import { X509Certificate } from 'node:crypto';
import { watch } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { BlockList, createServer, isIP, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import type { Duplex } from 'node:stream';
import {
  createSecureContext,
  createServer as createTlsServer,
  type SecureContextOptions,
} from 'node:tls';
import { createWebSocketStream, type RawData, type WebSocket, WebSocketServer } from 'ws';
import { listenTogether } from '../../src/lib/servers.ts';
import type { Listen, Log, TlsListen } from '../ports.ts';
import type { Admission, Admitted } from './admission.ts';
import type { MonotonicClock } from '../../src/lib/clock-readings.ts';

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
  now: MonotonicClock;
};

export type Listener = { port: number; close: () => Promise<void> };
type TlsListener = Listener & { certificate: Omit<WatchedCertificate, 'close'> };

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

type WebSocketListener = {
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
    // Answered as far as the limit of frames goes.
    autoPong: false,
    handleProtocols: (offered) => ['mqtt', 'mqttv3.1'].find((name) => offered.has(name)) ?? false,
  });
  const entries = new WeakMap<IncomingMessage, Admitted>();
  server.on('connection', (socket, request) => {
    const entry = entries.get(request);
    limitFrames(
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

/** Files that change together are read once, when both have been quiet this long. */
const settleMs = 200;

type CertificateFiles = { certFile: string; keyFile: string };

type WatchedCertificate = {
  /** When the certificate that is in use ends, ms since 1970. */
  expiresTs: () => number;
  /** Reads both now: a network file system may not tell of a change. Never rejects. */
  reload: () => Promise<void>;
  close: () => void;
};

/**
 * Reads a certificate and its key, and again whenever their directories change (certificates are
 * replaced by renaming files or links). What cannot be used is logged, and the old one stays.
 */
async function watchCertificate(
  { certFile, keyFile }: CertificateFiles,
  log: Log,
  use: (context: SecureContextOptions) => void,
): Promise<WatchedCertificate> {
  let current = await read();
  use(current);
  let timer: NodeJS.Timeout | undefined;

  async function read() {
    const [cert, key] = await Promise.all([readFile(certFile, 'utf8'), readFile(keyFile, 'utf8')]);
    return { cert, key };
  }

  async function reload(): Promise<void> {
    try {
      const next = await read();
      if (next.cert === current.cert && next.key === current.key) return;
      createSecureContext(next);
      use(next);
      current = next;
      log.info({ event: 'certificate.reloaded', certFile }, 'The TLS certificate was reloaded.');
    } catch (error) {
      log.error(
        { event: 'certificate.refused', err: error, certFile },
        'The new TLS certificate cannot be used; the old one stays in use.',
      );
    }
  }

  const directories = new Set([dirname(certFile), dirname(keyFile)]);
  const watchers = [...directories].map((directory) =>
    watch(directory, { persistent: false }, () => {
      clearTimeout(timer);
      timer = setTimeout(() => void reload(), settleMs);
    }),
  );
  return {
    expiresTs: () => new X509Certificate(current.cert).validToDate.getTime(),
    reload,
    close() {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}

const version2Addresses = 16;

/**
 * The client's address in a whole PROXY protocol header; null where the proxy speaks for itself or
 * names none (LOCAL, UNKNOWN, a Unix socket). haproxy's proxy-protocol.txt, sections 2.1 and 2.2.
 */
function readProxiedAddress(header: Buffer): string | null {
  if (header[0] !== 0x0d) return readLine(header.toString('latin1'));
  const [command, family] = [header[12], header[13]];
  if (command !== 0x21 || family === undefined) return null;
  const addresses = header.subarray(version2Addresses);
  if (family >> 4 === 1 && addresses.length >= 12) return [...addresses.subarray(0, 4)].join('.');
  if (family >> 4 === 2 && addresses.length >= 36) return ipv6(addresses);
  return null;
}

function readLine(line: string): string | null {
  const address = /^PROXY TCP[46] (\S+) /.exec(line)?.[1] ?? '';
  return isIP(address) === 0 ? null : plainAddress(address);
}

function ipv6(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, n) => bytes.readUInt16BE(n * 2).toString(16));
  const mapped = groups.slice(0, 6).join(':') === '0:0:0:0:0:ffff';
  return mapped ? [...bytes.subarray(12, 16)].join('.') : groups.join(':');
}

/** An IPv4 address as it arrives on a socket for both kinds: without its IPv6 prefix. */
function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
}

/** First bytes of version 2, and of version 1, of the PROXY protocol. */
const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const textStart = Buffer.from('PROXY ');
/** Version 1 is a line of at most 107 bytes; what version 2 adds to its addresses is small. */
const maxLineBytes = 107;
const maxBytes = 1_024;
const fixedBytes = 16;

/** Whether a peer is one of the proxies (addresses or networks) that may speak for others. */
export function createTrust(proxies: string[]): (socket: Socket) => boolean {
  const list = new BlockList();
  for (const entry of proxies) {
    const [address = '', prefix] = entry.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return ({ remoteAddress = '' }) =>
    proxies.length > 0 &&
    isIP(remoteAddress) !== 0 &&
    list.check(remoteAddress, isIP(remoteAddress) === 6 ? 'ipv6' : 'ipv4');
}

/**
 * The length of the PROXY protocol header that `bytes` begin with; null while it is incomplete, -1
 * where they begin with something else. Versions 1 and 2, as haproxy's proxy-protocol.txt has them.
 */
export function measureProxyHeader(bytes: Buffer): number | null {
  if (startsLike(bytes, signature)) {
    if (bytes.length < fixedBytes) return null;
    // Version 2, commands LOCAL and PROXY.
    if (bytes.readUInt8(12) !== 0x20 && bytes.readUInt8(12) !== 0x21) return -1;
    const length = fixedBytes + bytes.readUInt16BE(14);
    if (length > maxBytes) return -1;
    return bytes.length < length ? null : length;
  }
  if (!startsLike(bytes, textStart)) return -1;
  const end = bytes.indexOf('\r\n');
  if (end >= 0) return end + 2 <= maxLineBytes ? end + 2 : -1;
  return bytes.length < maxLineBytes ? null : -1;
}

/** As far as either goes. */
function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.subarray(0, length).equals(start.subarray(0, length));
}

/**
 * Takes the header that a proxy puts in front of what its client sends; a connection without one is
 * closed. `enter` is told the client's address, null where the proxy names none, and finds the socket as
 * the client left it.
 */
function takeProxyHeader(
  socket: Socket,
  timeoutMs: number,
  enter: (address: string | null) => void,
): void {
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  let held: Buffer = Buffer.alloc(0);
  const done = () => {
    clearTimeout(timer);
    socket.off('readable', onReadable).off('close', done);
  };
  const onReadable = () => {
    for (;;) {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      const length = measureProxyHeader(held);
      if (length === null) continue;
      done();
      if (length < 0) return void socket.destroy();
      if (held.length > length) socket.unshift(held.subarray(length));
      return enter(readProxiedAddress(held.subarray(0, length)));
    }
  };
  socket.on('readable', onReadable).once('close', done);
}

type FrameLimitOptions = {
  /** ms, of a clock that nobody sets. */
  now: MonotonicClock;
  /** A message may have so many bytes before it has ended. */
  maxMessageBytes: number;
  /** Told once. */
  onExceeded: () => void;
};

type FrameLimit = { perSecond: number; burst: number };

/** Frames with less than four bytes of payload, and pings. */
const frames: FrameLimit = { perSecond: 100, burst: 200 };
/** Bytes on the wire beyond the frames' due; a message that has not ended is among them. */
const bytes: FrameLimit = { perSecond: 1_000, burst: 65_536 };
/** What a frame of four bytes takes on the wire, masked, for each of its bytes. */
const wireBytesAByte = 2.5;
const paidBytes = 4;

/**
 * Closes a WebSocket that sends many frames that carry little, or messages in fragments of little: MQTT never sees
 * empty frames and pings, so that none of its limits hold for them. Larger frames make good for smaller ones, as some
 * clients write a packet in several. Answers pings, which the socket is not to do by itself (`autoPong`).
 */
function limitFrames(
  { webSocket, socket }: { webSocket: WebSocket; socket: Socket },
  { now, maxMessageBytes, onExceeded }: FrameLimitOptions,
): void {
  const mayFrame = createFrameLimit(frames, now);
  const mayRead = createFrameLimit({ ...bytes, burst: bytes.burst + maxMessageBytes }, now);
  let isOver = false;
  const expect = (isAllowed: boolean) => {
    if (isAllowed || isOver) return !isOver;
    isOver = true;
    onExceeded();
    // What was read already is still taken apart: ten thousand frames, which nobody is to hear of any more.
    for (const event of ['message', 'ping', 'pong']) webSocket.removeAllListeners(event);
    webSocket.terminate();
    return false;
  };
  const takeFrame = (data: RawData): boolean => {
    const length = lengthOf(data);
    mayRead(-length * wireBytesAByte);
    return expect(mayFrame(1 - length / paidBytes));
  };
  webSocket.on('message', takeFrame);
  webSocket.on('ping', (data) => {
    if (takeFrame(data)) webSocket.pong(data);
  });
  webSocket.on('pong', takeFrame);
  socket.on('data', (chunk: Buffer) => expect(mayRead(chunk.length)));
}

/** Takes what something costs; gives whether there was so much left. What is earned beyond is not kept. */
export function createFrameLimit({ perSecond, burst }: FrameLimit, now: MonotonicClock) {
  let owed = 0;
  let sinceMs = now();
  return (cost: number): boolean => {
    owed = Math.max(0, owed + cost);
    if (owed <= burst) return true;
    // The clock is read once a burst.
    const monotonicMs = now();
    owed = Math.max(0, owed - ((monotonicMs - sinceMs) * perSecond) / 1_000);
    sinceMs = monotonicMs;
    return owed <= burst;
  };
}

const lengthOf = (data: RawData): number =>
  Array.isArray(data) ? data.reduce((sum, { length }) => sum + length, 0) : data.byteLength;
