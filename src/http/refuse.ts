import { randomUUID } from 'node:crypto';
import { STATUS_CODES, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { DomainError } from '../errors.ts';
import { toAnswer } from './errors.ts';

/** Answers what Node could not parse, or waited for too long, in the form of every other error. */
export function refuseConnection(error: Error & { code?: string }, socket: Duplex, nowTs: number) {
  if (!socket.writable || error.code === 'ECONNRESET') return socket.destroy();
  if (error.code === 'HPE_HEADER_OVERFLOW')
    return refuse(socket, 431, 'The headers are too large', nowTs);
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return refuse(socket, 408, 'The request took too long to arrive', nowTs);
  }
  return refuse(socket, 400, 'This is not HTTP as RFC 9112 has it', nowTs);
}

export function refuseUpgrade(socket: Duplex, nowTs: number) {
  socket.on('error', () => socket.destroy());
  return refuse(socket, 404, 'There is no such resource', nowTs);
}

/** Answers a request that cannot even wait, and ends its connection: nothing more is read of it. */
export function refuseAtOnce(response: ServerResponse, nowTs: number): void {
  const error = new DomainError(
    'unavailable',
    'Too many large requests wait already: try again later.',
    { retryAfterSeconds: 2 },
  );
  const { status, headers, body } = toAnswer(error, randomUUID(), nowTs);
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'application/json; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
    Connection: 'close',
  });
  response.end(JSON.stringify(body));
}

function refuse(socket: Duplex, status: number, detail: string, nowTs: number): Duplex {
  const error = Object.assign(new Error(detail), { status });
  const body = JSON.stringify(toAnswer(error, randomUUID(), nowTs).body);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ];
  return socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}
