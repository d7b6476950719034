import type { Enemy } from '../enemy.ts';
import type { NoisyKind } from '../kind.ts';
import { enough } from '../workers.ts';

type Flood = { connections: number; text: string; requests: number; pauseMs: number };

/** Writes the text on each connection, again and again; what is closed is opened anew. */
async function flood(enemy: Enemy, signal: AbortSignal, of: Flood): Promise<void> {
  const port = Number(new URL(enemy.url).port);
  const open = () => {
    if (signal.aborted) return;
    const socket = enemy.dial(port).resume();
    enemy.tally.count('opened');
    const write = () => {
      // One that the service has ended is not destroyed yet, and takes nothing more.
      if (signal.aborted || !socket.writable) return;
      enemy.tally.count('asked', of.requests);
      socket.write(of.text, () =>
        of.pauseMs > 0 ? setTimeout(write, of.pauseMs) : setImmediate(write),
      );
    };
    write();
    socket.once('close', () => setTimeout(open, of.pauseMs > 0 ? 100 : 10).unref());
  };
  for (let n = 0; n < of.connections; n++) open();
  await enough(signal);
}

/** Requests of nobody, which no account's rate counts, written before any is answered. */
export const pipelining: NoisyKind = {
  name: 'pipelining',
  says: '50 connections that write 2,000 requests at once, with and without a token',
  setUp: async (enemy) => {
    const token = `Authorization: Bearer ${enemy.account.token}\r\n`;
    const request = (n: number) =>
      `GET ${n % 2 === 0 ? '/v2/status' : '/v2/devices'} HTTP/1.1\r\nHost: x\r\n` +
      `${n % 2 === 0 ? '' : token}\r\n`;
    const requests = 2_000;
    const text = Array.from({ length: requests }, (_, n) => request(n)).join('');
    return (signal) => flood(enemy, signal, { connections: 50, text, requests, pauseMs: 50 });
  },
};

/** The shortest there is of each form, among them what an HTTP server of Node's would answer before anybody is asked. */
const shortest: Record<string, string> = {
  plain: 'GET /v2/accounts HTTP/1.1\r\nHost: a\r\n\r\n',
  'without-host': 'GET / HTTP/1.1\r\n\r\n',
  expecting: 'GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n',
  continued: 'GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n',
  upgrading: 'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
  connecting: 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
  malformed: 'A\r\n\r\n',
  chunked: `POST /v2/accounts/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(10_000)}0\r\n\r\n`,
};
const writtenBytes = 65_536;

/** Of one address, without a pause, on a heap of half a gigabyte. */
export const pipelined: NoisyKind[] = [
  ...Object.keys(shortest).map((form) => ({ form, connections: 400 })),
  { form: 'plain', connections: 2_000 },
].map(({ form, connections }) => ({
  name: `pipelined-${form}${connections > 400 ? '-many' : ''}`,
  says: `${connections} connections that write 64 KiB of the shortest requests at once, without a pause: ${form}`,
  livezMs: 300,
  keptMb: 100,
  variables: () => ({ NODE_OPTIONS: '--max-old-space-size=512' }),
  setUp: async (enemy) => {
    const one = shortest[form] ?? '';
    const requests = Math.max(1, Math.floor(writtenBytes / one.length));
    const text = one.repeat(requests);
    return (signal) => flood(enemy, signal, { connections, text, requests, pauseMs: 0 });
  },
}));
