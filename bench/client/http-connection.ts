import { connect, type Socket } from 'node:net';

/** `retryAfterSeconds`: 0 if the answer does not say. */
export type HttpAnswer = { status: number; body: string; retryAfterSeconds: number };

export type HttpConnectionOptions = {
  host: string;
  port: number;
  /** The local address; absent: any. */
  localAddress?: string | undefined;
  /** A request without an answer for this long ends the connection. */
  timeoutMs: number;
  opened?: () => void;
  answered: (answer: HttpAnswer) => void;
  /** Ended by either side, or never opened. */
  ended: (reason: string) => void;
};

/** A connection with one request at a time under way. */
export type HttpConnection = {
  /** May be called before it is open. */
  ask: (request: string) => void;
  /** `reset`: like a lost link. `ended` is not called any more. */
  close: (how: 'end' | 'reset') => void;
};

/** The small part of HTTP/1.1 that a load client needs. Answers must have a length. */
export function openHttpConnection(options: HttpConnectionOptions): HttpConnection {
  const { host, port, localAddress, timeoutMs } = options;
  let isClosed = false;
  let reason = 'closed by the server';
  let said: Buffer = Buffer.alloc(0);
  const from = localAddress === undefined ? {} : { localAddress };
  const socket: Socket = connect({ host, port, ...from, noDelay: true });
  socket.once('connect', () => options.opened?.());
  socket.on('timeout', () => {
    reason = `no answer within ${timeoutMs} ms`;
    socket.destroy();
  });
  socket.on('error', (error) => (reason = error.message));
  socket.once('close', () => isClosed || options.ended(reason));
  socket.on('data', (chunk: Buffer) => {
    said = said.length === 0 ? chunk : Buffer.concat([said, chunk]);
    const read = readAnswer(said);
    if (!read || isClosed) return;
    said = said.subarray(read.bytes);
    socket.setTimeout(0);
    options.answered(read.answer);
  });
  return {
    ask(request) {
      socket.setTimeout(timeoutMs);
      socket.write(request);
    },
    close(how) {
      isClosed = true;
      if (how === 'reset' && !socket.connecting) socket.resetAndDestroy();
      else socket.destroy();
    },
  };
}

/** The answer at the start of these bytes; null if it is incomplete. */
function readAnswer(bytes: Buffer): { answer: HttpAnswer; bytes: number } | null {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const head = bytes.toString('latin1', 0, end);
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
  const from = end + 4;
  if (bytes.length < from + length) return null;
  const answer = {
    status: Number(head.slice(9, 12)),
    body: bytes.toString('utf8', from, from + length),
    retryAfterSeconds: Number(/^retry-after: *(\d+)/im.exec(head)?.[1] ?? 0),
  };
  return { answer, bytes: from + length };
}
