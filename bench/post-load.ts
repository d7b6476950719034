import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { measureFor, type Watched } from './measure.ts';
import type { Metrics } from './rounds.ts';

export type PostLoad = {
  port: number;
  /** One kept connection each: its path and its Authorization. */
  senders: { path: string; authorization: string }[];
  seconds: number;
  warmupSeconds: number;
  watched: Watched;
};

/** A device per connection, which sends its uuid and token with each request. */
export function sendersOf(devices: { uuid: string; token: string }[]): PostLoad['senders'] {
  return devices.map(({ uuid, token }) => ({
    path: `/devices/${uuid}/up/measurements`,
    authorization: `Basic ${Buffer.from(`${uuid}:${token}`).toString('base64')}`,
  }));
}

/**
 * Each connection has one request at a time under way, with a value of one sense. Reports answers per second, and
 * answers per second of the server's processor time. Throws if an answer is not 200.
 */
export async function postOnce(load: PostLoad): Promise<Metrics> {
  const { port, senders, seconds, warmupSeconds, watched } = load;
  let answered = 0;
  const failures: Error[] = [];
  let isOver = false;
  const sockets = await Promise.all(senders.map((sender) => open(port, sender)));

  async function open(to: number, { path, authorization }: PostLoad['senders'][number]) {
    const socket: Socket = connect({ host: '127.0.0.1', port: to, noDelay: true });
    await once(socket, 'connect');
    let ts = Date.now() - 1_000_000;
    const ask = () => {
      const body = `{"sId":"0x01","val":${20 + (ts % 100) / 20},"ts":${(ts += 1)}}`;
      socket.write(
        `POST ${path} HTTP/1.1\r\nHost: bench\r\nAuthorization: ${authorization}\r\n` +
          `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
    };
    let said = '';
    socket.on('data', (chunk: Buffer) => {
      said += chunk.toString('latin1');
      if (!said.endsWith('}')) return;
      if (!said.startsWith('HTTP/1.1 200')) failures.push(new Error(said));
      said = '';
      answered += 1;
      if (!isOver) ask();
    });
    socket.on('error', (error) => void (isOver || failures.push(error)));
    ask();
    return socket;
  }

  await measureFor(warmupSeconds, watched, () => ({}));
  const metrics = await measureFor(seconds, watched, () => ({ answersPerSecond: answered }));
  isOver = true;
  for (const socket of sockets) socket.destroy();
  const [failure] = failures;
  if (failure) throw failure;
  const { answersPerSecond = NaN, serverCores = NaN } = metrics;
  return { ...metrics, answersPerCpuSecond: answersPerSecond / serverCores };
}
