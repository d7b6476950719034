import { once } from 'node:events';
import {
  type AddressInfo,
  connect,
  createServer,
  isIP,
  type NetConnectOpts,
  type Server,
} from 'node:net';
import { platform } from 'node:process';
import { connect as connectTls } from 'node:tls';
import { codeOf } from './thrown.ts';

/** Where a server is expected: a TCP address, or the path of a Unix socket. */
export type ServerPlace = { host: string; port: number } | { path: string };

/** The result of `ask`. `failed`: there was no connection, or no TLS on it. */
export type ServerAnswer =
  | { kind: 'said'; bytes: Buffer }
  | { kind: 'closed' }
  | { kind: 'silent' }
  | { kind: 'failed'; error: Error };

/**
 * Connects, sends `question` and returns the first bytes of the answer. It knows no protocol, so what an unknown server
 * sends cannot harm a client library.
 */
export function ask(
  place: ServerPlace,
  question: Buffer | string,
  { timeoutMs, tls = false }: { timeoutMs: number; tls?: boolean },
): Promise<ServerAnswer> {
  return new Promise((resolve) => {
    const { socket, connected } = open(place, tls);
    let isConnected = false;
    const end = (answer: ServerAnswer) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timeout = () => new Error(`no connection within ${timeoutMs / 1_000} s`);
    const timer = setTimeout(
      () => end(isConnected ? { kind: 'silent' } : { kind: 'failed', error: timeout() }),
      timeoutMs,
    );
    socket.once('connect', () => (isConnected = true));
    socket.once(connected, () => socket.write(question));
    socket.once('data', (bytes: Buffer) => end({ kind: 'said', bytes }));
    socket.once('close', () => end({ kind: 'closed' }));
    socket.on('error', (error) =>
      end(isConnected && !isTlsError(error) ? { kind: 'closed' } : { kind: 'failed', error }),
    );
  });
}

function open(place: ServerPlace, tls: boolean) {
  const options: NetConnectOpts = place;
  if (!tls) return { socket: connect(options), connected: 'connect' };
  const servername = 'host' in place && isIP(place.host) === 0 ? { servername: place.host } : {};
  return { socket: connectTls({ ...options, ...servername }), connected: 'secureConnect' };
}

/** A certificate that is not accepted, or an answer that is not TLS. */
export function isTlsError(error: Error): boolean {
  return isCertificateError(error) || /^(ERR_SSL|EPROTO)/.test(codeOf(error));
}

/** A certificate that is not accepted: unknown authority, wrong host, or expired. */
export function isCertificateError(error: Error): boolean {
  return /^ERR_TLS|CERT|VERIFY/.test(codeOf(error));
}

/** PostgreSQL's SSLRequest. Every server answers it with one byte: S or N. */
export const sslRequest = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/** Whether this is PostgreSQL's answer to an SSLRequest. A longer answer comes from something else. */
export function isPostgres(answer: ServerAnswer): boolean {
  return answer.kind === 'said' && /^[NS]$/.test(answer.bytes.toString('latin1'));
}

/** The first bytes of servers that are often addressed by mistake. */
const known: [RegExp, string][] = [
  [/^HTTP\/\d/, 'an HTTP server'],
  [/^SSH-/, 'an SSH server'],
  [/^(\+PONG|[-+](ERR|NOAUTH|OK|LOADING|DENIED|WRONGPASS|NOPERM)\b)/, 'a Redis server'],
  [/^220[ -]/, 'a mail or FTP server'],
  // oxlint-disable-next-line no-control-regex -- bytes, not text
  [/^..\0[\0-\x03](\x0a[\d.]|\xff)/s, 'a MySQL or MariaDB server'],
  // oxlint-disable-next-line no-control-regex
  [/^[\x15\x16]\x03[\0-\x04]/, 'a server that expects TLS'],
];

/** What sent these first bytes, for messages: "an HTTP server". */
export function recognise(bytes: Buffer): string {
  const text = bytes.toString('latin1');
  const found = known.find(([pattern]) => pattern.test(text));
  return found?.[1] ?? `an unknown server (it sent ${JSON.stringify(text.slice(0, 20))})`;
}

/** "db.example.com:5432", for messages. */
export function nameOfPlace(place: ServerPlace): string {
  return 'path' in place
    ? place.path
    : `${isIP(place.host) === 6 ? `[${place.host}]` : place.host}:${place.port}`;
}

const unreachable: Record<string, (name: string) => string> = {
  ECONNREFUSED: (name) => `nothing listens at ${name}`,
  ENOENT: (name) => `${name} does not exist`,
  EACCES: (name) => `this user may not use ${name}`,
  ENOTFOUND: (name) => `the host of ${name} is unknown here`,
  EAI_AGAIN: (name) => `the host of ${name} is unknown here, or no name server answers`,
};

/** Why there was no connection, for messages. */
export function whyUnreachable(error: Error, place: ServerPlace): string {
  const code = codeOf(error);
  const why = Object.hasOwn(unreachable, code) ? unreachable[code] : undefined;
  if (why !== undefined) return `${why(nameOfPlace(place))} (${code})`;
  return `no connection to ${nameOfPlace(place)} (${error.message || code})`;
}

type ListeningPlace = { host: string; port: number; backlog: number };

/** Only Linux distributes connections among sockets that share a port. */
const canShare = platform === 'linux';

/**
 * Listens with these servers on one port, and returns the port. libuv accepts one connection per socket in each turn of
 * its loop, and a turn also reads from every connection that has data; several sockets accept several connections per
 * turn. If the kernel does not share a port, only the first server listens. Port 0: any free one. Rejects if the
 * address is unavailable or belongs to another process, and closes the servers that listen already.
 */
export async function listenTogether(
  servers: readonly [Server, ...Server[]],
  { host, port, backlog }: ListeningPlace,
): Promise<number> {
  // A socket that shares its port would also share that of another process.
  if (canShare && port !== 0) await expectFree(host, port);
  const [first, ...further] = servers;
  const listenOn = async (server: Server, on: number) => {
    await once(server.listen({ host, port: on, backlog, reusePort: canShare }), 'listening');
  };
  await listenOn(first, port);
  const { port: had } = first.address() as AddressInfo;
  try {
    for (const server of canShare ? further : []) await listenOn(server, had);
  } catch (error) {
    for (const server of servers) if (server.listening) server.close();
    throw error;
  }
  return had;
}

async function expectFree(host: string, port: number): Promise<void> {
  const probe = createServer();
  await once(probe.listen({ host, port }), 'listening');
  await once(probe.close(), 'close');
}
