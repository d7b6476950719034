import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { generate } from 'mqtt-packet';
import type { Proxy } from '../faults/proxy.ts';

export type Credential = { uuid: string; token: string };
export type Bytes = { toService: number; fromService: number };

/** A connection of a device. `exchange` resolves once the whole answer has come. */
type Connection = {
  exchange(request: Buffer, isWhole: (answer: Buffer) => boolean): Promise<void>;
  close(last?: Buffer): Promise<void>;
};

/** `tls`: over TLS, trusting any certificate. No session is resumed. */
export type Way = { proxy: Proxy; tls: boolean };

const servername = 'sensorium.example';
/** What boards offer. The further keys that Node offers would take 1,200 bytes more each way. */
const ecdhCurve = 'P-256';

async function open({ proxy, tls }: Way): Promise<Connection> {
  const address = { host: '127.0.0.1', port: proxy.port };
  const socket: Socket = tls
    ? connectTls({ ...address, servername, ecdhCurve, rejectUnauthorized: false })
    : connect(address);
  await once(socket, tls ? 'secureConnect' : 'connect');
  const closed = once(socket, 'close');
  let answer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => (answer = Buffer.concat([answer, chunk])));
  return {
    async exchange(request, isWhole) {
      answer = Buffer.alloc(0);
      socket.write(request);
      while (!isWhole(answer)) await once(socket, 'data');
    },
    async close(last) {
      if (last) socket.end(last);
      else socket.end();
      await closed;
    },
  };
}

/** The cost of one message: in an open connection, and with a connection of its own. */
export type Cost = { standing: Bytes; connecting: Bytes };

async function measure(
  { proxy }: Way,
  {
    connected,
    send,
    last,
  }: {
    connected: () => Promise<Connection>;
    send: (connection: Connection) => Promise<void>;
    last?: Buffer;
  },
): Promise<Cost> {
  const since = (before: ReturnType<Proxy['carried']>): Bytes => {
    const { toTarget, fromTarget } = proxy.carried();
    return {
      toService: toTarget - before.toTarget,
      fromService: fromTarget - before.fromTarget,
    };
  };
  const atFirst = proxy.carried();
  const connection = await connected();
  await send(connection);
  const atSecond = proxy.carried();
  await send(connection);
  const standing = since(atSecond);
  await connection.close(last);
  const all = since(atFirst);
  return {
    standing,
    connecting: {
      toService: all.toService - standing.toService,
      fromService: all.fromService - standing.fromService,
    },
  };
}

/** With MQTT 3.1.1 and QoS 1. */
export function measureMqtt(way: Way, { uuid, token }: Credential, payload: () => string) {
  const answerOf = (bytes: number) => (answer: Buffer) => answer.length >= bytes;
  const login = generate({
    cmd: 'connect',
    clientId: 'sensor',
    protocolVersion: 4,
    clean: true,
    keepalive: 60,
    username: uuid,
    password: Buffer.from(token),
  });
  return measure(way, {
    async connected() {
      const connection = await open(way);
      await connection.exchange(login, answerOf(4));
      return connection;
    },
    send: (connection) => {
      const message = {
        topic: `devices/${uuid}/up/measurements`,
        payload: payload(),
        messageId: 1,
        qos: 1 as const,
        dup: false,
        retain: false,
      };
      return connection.exchange(generate({ cmd: 'publish', ...message }), answerOf(4));
    },
    last: generate({ cmd: 'disconnect' }),
  });
}

/** With HTTP and the headers that examples/devices/micropython sends. */
export function measureHttp(way: Way, { uuid, token }: Credential, payload: () => string) {
  const isWhole = (answer: Buffer) => {
    const text = answer.toString('latin1');
    const [, length] = /content-length: (\d+)/i.exec(text) ?? [];
    const body = text.indexOf('\r\n\r\n') + 4;
    if (length === undefined || body < 4 || text.length < body + Number(length)) return false;
    if (!text.startsWith('HTTP/1.1 200 ')) throw new Error(text);
    return true;
  };
  const login = Buffer.from(`${uuid}:${token}`).toString('base64');
  return measure(way, {
    connected: () => open(way),
    send(connection) {
      const body = payload();
      const lines = [
        `POST /devices/${uuid}/up/measurements HTTP/1.1`,
        'Host: sensorium.example',
        `Authorization: Basic ${login}`,
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
      ];
      return connection.exchange(Buffer.from(`${lines.join('\r\n')}\r\n\r\n${body}`), isWhole);
    },
  });
}
