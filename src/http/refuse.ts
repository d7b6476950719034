import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { DomainError } from '../errors.ts';
import { toAnswer } from './errors.ts';

/** Answers what Node could not parse, or waited for too long, in the form of every other error. */
export function refuseConnection(error: Error & { code?: string }, socket: Duplex, nowTs: number) {
  if (!socket.writable || error.code === 'ECONNRESET') return socket.destroy();
  if (error.code === 'HPE_HEADER_OVERFLOW')
    return refuse(socket, 431, 'The request line and the headers are larger than 16 KiB', nowTs);
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return refuse(socket, 408, 'The request took too long to arrive', nowTs);
  }
  return refuse(socket, 400, 'This is not HTTP as RFC 9112 has it', nowTs);
}

/** `isAddressed`: by its one `Host`. */
export function refuseUpgrade(socket: Duplex, isAddressed: boolean, nowTs: number) {
  socket.on('error', () => socket.destroy());
  if (isAddressed) return refuse(socket, 404, 'There is no such resource', nowTs);
  return refuse(socket, 400, oneHost, nowTs);
}

/** Answers a request that cannot even wait, and ends its connection: nothing more is read of it. */
export function refuseAtOnce(response: ServerResponse, nowTs: number): void {
  const detail = 'Too many large requests wait already: try again later.';
  const error = new DomainError('unavailable', detail, { retryAfterSeconds: 2 });
  sendRefusal(response, error, nowTs);
}

/** RFC 9112 section 3.2: a request with no `Host`, or with two, might be meant for somebody else. */
export function refuseHost(response: ServerResponse, nowTs: number): void {
  sendRefusal(response, of(400, oneHost), nowTs);
}

/** RFC 9110 section 10.1.1. */
export function refuseExpectation(response: ServerResponse, nowTs: number): void {
  sendRefusal(response, of(417, 'The only expectation that is met is 100-continue'), nowTs);
}

/** RFC 9110 section 9.3.6. */
export function refuseConnect(socket: Duplex, nowTs: number) {
  socket.on('error', () => socket.destroy());
  return refuse(socket, 405, 'This service is no proxy: there is no CONNECT', nowTs);
}

/** What a request is answered with that no route sees; its connection ends. */
function sendRefusal(response: ServerResponse, error: Error, nowTs: number): void {
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

function refuse(socket: Duplex, status: number, detail: string, nowTs: number): Duplex {
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
 * The connection stays for a moment: closed with bytes unread it is reset, which may take the answer with it (RFC 9112
 * section 9.6). And whoever tries again at once costs others less: 400 connections are 800 a second.
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
