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
  /** Takes a byte stream that carries MQTT. */
  handle: (stream: Duplex, entry: Admitted, request?: IncomingMessage) => void;
  log: Log;
  handshakeTimeoutMs: number;
  maxPacketBytes: number;
  /** Whether a peer is a trusted proxy, whose connections begin with a PROXY protocol header. */
  isProxy: (socket: Socket) => boolean;
  /** A monotonic clock, ms. */
  now: MonotonicClock;
};

export type Listener = { port: number; close: () => Promise<void> };
type TlsListener = Listener & { certificate: Omit<WatchedCertificate, 'close'> };

/** Small, so that a socket that may not be read buffers little. */
const highWaterMark = 16_384;
/** Nothing is read before the connection is admitted; then aedes starts to read. */
const serverOptions = { pauseOnConnect: true, noDelay: true, keepAlive: true, highWaterMark };
/**
 * Several listening sockets share the port, because each accepts one connection in a turn of the event loop. Otherwise
 * a flood of strangers would keep devices from being accepted. `admission` then decides who comes first.
 */
const sockets = 16;
/**
 * The queue of each listening socket. When a fleet reconnects at once, connections wait in the kernel instead of being
 * refused. So do connections that were reset before they were accepted: a longer queue would mean a longer wait.
 */
const backlog = 256;

export async function listenTcp(listen: Listen, deps: ListenerDeps): Promise<Listener> {
  return startListening(listen, (socket) => {
    behindProxy(socket, deps, (address) =>
      deps.admission.offer(socket, address, (entry) => deps.handle(socket, entry)),
    );
  });
}

/** Listens for MQTT over TLS. Reads the certificate again when its files change; open connections stay open. */
export async function listenTls(listen: TlsListen, deps: ListenerDeps): Promise<TlsListener> {
  /** By peer, because TLS wraps the admitted socket in a new one. */
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
  // Admission comes before the handshake, which is the expensive part.
  const onConnection = (socket: Socket) => {
    behindProxy(socket, deps, (address) =>
      deps.admission.offer(socket, address, (entry) => {
        const name = peerOf(socket);
        entries.set(name, entry);
        socket.once('close', () => entries.delete(name));
        // `takeProxyHeader` has read the socket already, and what followed the header must wait for TLS.
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

/** Finds the client's address, then calls `enter`. A proxy sends the address before anything else. */
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

/**
 * A connection that exceeds the frame limits counts as this many refused logins. One chunk may hold ten thousand
 * frames, and taking them apart costs about as much.
 */
const logins = 20;

/** MQTT over WebSocket, MQTT 3.1.1 section 6, on upgrades that another HTTP server hands over. */
export function createWebSocketListener(deps: ListenerDeps): WebSocketListener {
  const maxPayload = deps.maxPacketBytes * 2;
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    // Spreads the frames of one chunk over many turns of the event loop.
    allowSynchronousEvents: false,
    maxPayload,
    // `limitFrames` answers pings, within its limits.
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
    // Nobody reads on, so nothing more is to be taken apart.
    const { _destroy: destroy } = stream;
    stream._destroy = (error, done) => {
      dropRest(socket);
      destroy.call(stream, error, done);
    };
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

/** Files that change together are read once, after this long without another change. */
const settleMs = 200;

type CertificateFiles = { certFile: string; keyFile: string };

type WatchedCertificate = {
  /** When the certificate in use expires, ms since 1970. */
  expiresTs: () => number;
  /** Reads both files now: a network file system may not report changes. Never rejects. */
  reload: () => Promise<void>;
  close: () => void;
};

/**
 * Reads a certificate and its key, and reads them again whenever their directories change, because certificates are
 * replaced by renaming files or links. A certificate that cannot be used is logged, and the old one stays in use.
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
 * The client's address in a whole PROXY protocol header. Null if the proxy speaks for itself or names no address
 * (LOCAL, UNKNOWN, a Unix socket). haproxy's proxy-protocol.txt, sections 2.1 and 2.2.
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

/** An address without the IPv4-mapped prefix, with which a dual-stack socket shows IPv4 peers. */
function plainAddress(address: string | undefined): string {
  return (address ?? '').replace(/^::ffff:(?=\d+\.)/i, '');
}

/** The first bytes of version 2, and of version 1, of the PROXY protocol. */
const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const textStart = Buffer.from('PROXY ');
/** Version 1 is a line of at most 107 bytes. What version 2 adds to its addresses is small. */
const maxLineBytes = 107;
const maxBytes = 1_024;
const fixedBytes = 16;

/** Whether a peer is one of the proxies (addresses or networks) that may name a client. */
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
 * The length of the PROXY protocol header at the start of `bytes`; null while it is incomplete, -1 if they begin with
 * something else. Versions 1 and 2 of haproxy's proxy-protocol.txt.
 */
export function measureProxyHeader(bytes: Buffer): number | null {
  if (startsLike(bytes, signature)) {
    if (bytes.length < fixedBytes) return null;
    // Version 2 has the commands LOCAL and PROXY.
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

/** Compares as many bytes as both have. */
function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.subarray(0, length).equals(start.subarray(0, length));
}

/**
 * Reads the header that a proxy sends before its client's bytes, and closes a connection that has none. `enter` gets
 * the client's address, or null if the proxy names none, and the socket then begins with the client's first byte.
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
  /** A monotonic clock, ms. */
  now: MonotonicClock;
  /** How many bytes a message may have before it ends. */
  maxMessageBytes: number;
  /** Called once. */
  onExceeded: () => void;
};

type FrameLimit = { perSecond: number; burst: number };

/** Frames with less than four bytes of payload, and pings. */
const frames: FrameLimit = { perSecond: 100, burst: 200 };
/** Bytes on the wire beyond what the payload accounts for. A message that has not ended is among them. */
const bytes: FrameLimit = { perSecond: 1_000, burst: 65_536 };
/** Bytes on the wire for each byte of payload, in a masked frame with four bytes of payload. */
const wireBytesAByte = 2.5;
const paidBytes = 4;

/**
 * Closes a WebSocket that sends many frames with little payload, or messages in tiny fragments. MQTT never sees empty
 * frames and pings, so none of its limits apply to them. Larger frames make up for smaller ones, because some clients
 * write a packet in several. Also answers pings, in place of `autoPong`.
 */
function limitFrames(
  { webSocket, socket }: { webSocket: WebSocket; socket: Socket },
  { now, maxMessageBytes, onExceeded }: FrameLimitOptions,
): void {
  // Frames of one chunk came at once, however many turns of the event loop lie between them.
  let readMs = now();
  const mayFrame = createFrameLimit(frames, () => readMs);
  const mayRead = createFrameLimit(
    { ...bytes, burst: bytes.burst + maxMessageBytes },
    () => readMs,
  );
  let isOver = false;
  const expect = (isAllowed: boolean) => {
    if (isAllowed || isOver) return !isOver;
    isOver = true;
    onExceeded();
    dropRest(webSocket);
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
  socket.on('data', (chunk: Buffer) => {
    readMs = now();
    expect(mayRead(chunk.length));
  });
}

/**
 * Drops what the WebSocket has read and not taken apart. Closed or not, it would take up to ten thousand frames out of
 * a chunk, one in a turn of the event loop, and keep the connection in memory for as long. `ws` has no function for
 * that: these are the members by which it drops what follows a close frame.
 */
function dropRest(webSocket: WebSocket): void {
  type Receiver = { _buffers: Buffer[]; _bufferedBytes: number; _opcode: number };
  const { _receiver } = webSocket as unknown as { _receiver: Receiver };
  Object.assign(_receiver, { _buffers: [], _bufferedBytes: 0, _opcode: 8 });
}

/** A leaky bucket: adds a cost and says whether the limit still holds. A negative cost only pays off debt. */
export function createFrameLimit({ perSecond, burst }: FrameLimit, now: MonotonicClock) {
  let owed = 0;
  let sinceMs = now();
  return (cost: number): boolean => {
    owed = Math.max(0, owed + cost);
    if (owed <= burst) return true;
    // Reads the clock only when a burst is used up.
    const monotonicMs = now();
    owed = Math.max(0, owed - ((monotonicMs - sinceMs) * perSecond) / 1_000);
    sinceMs = monotonicMs;
    return owed <= burst;
  };
}

const lengthOf = (data: RawData): number =>
  Array.isArray(data) ? data.reduce((sum, { length }) => sum + length, 0) : data.byteLength;
