import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { pino } from 'pino';
import { devicesPrefix, startHttpConnector } from '../../../connector/http/server.ts';
import type { ConnectorPorts } from '../../../connector/ports.ts';
import { DomainError } from '../../../src/errors.ts';
import { startHttp, type HttpOptions } from '../../../src/http/server.ts';
import { monotonicClock, systemClock } from '../../../src/lib/clock.ts';
import type { LogEvent } from '../../../src/log/events.ts';
import type { Write } from '../../../src/log/logger.ts';
import { limits } from '../harness.ts';
import { createStore } from '../store.ts';

export type HttpAnswer = {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
};

type HttpConnectorOptions = Parameters<typeof startHttpConnector>[0];
export type HttpWorldOptions = Partial<Omit<HttpConnectorOptions, 'limits'>> & {
  limits?: Partial<HttpConnectorOptions['limits']>;
  ports?: Partial<ConnectorPorts>;
  http?: Partial<HttpOptions>;
};

export type HttpWorld = Awaited<ReturnType<typeof startHttpWorld>>;

/** A connector of kind http with a store of its own, behind the service's HTTP server. */
export async function startHttpWorld(options: HttpWorldOptions = {}) {
  const { store, ports } = createStore();
  const device = store.addDevice(1);
  const logged: LogEvent[] = [];
  const log: Write = ({ event }) => void logged.push(event);
  const connector = startHttpConnector(
    {
      log: { info: log, warn: log, error: log },
      now: monotonicClock,
      findAddress: ({ socket, headers }) =>
        String(headers['x-forwarded-for'] ?? socket.remoteAddress),
      isLeaving: () => false,
      ...options,
      limits: { ...limits, ...options.limits },
      tuning: { sweepIntervalMs: 20, ...options.tuning },
    },
    { ...ports, ...options.ports },
  );
  const server = await startHttp({
    host: '127.0.0.1',
    port: 0,
    routes: [],
    authenticate: async () => {
      throw new DomainError('unauthenticated', 'This connector has no login.');
    },
    inFront: { prefix: devicesPrefix, handle: connector.handle },
    log: pino({ level: 'silent' }),
    clock: systemClock,
    ...options.http,
  });
  const url = `http://127.0.0.1:${server.port}`;
  const sockets: Socket[] = [];
  type As = { uuid: string; token: string };

  return {
    store,
    device,
    connector,
    url,
    logged,

    pathOf: (topic: string, { uuid }: As = device) => `/devices/${uuid}/up/${topic}`,
    basic: ({ uuid, token }: As = device) =>
      `Basic ${Buffer.from(`${uuid}:${token}`).toString('base64')}`,

    async send(path: string, init: RequestInit = {}): Promise<HttpAnswer> {
      const headers = { 'content-type': 'application/json', ...(init.headers as object) };
      const response = await fetch(url + path, { method: 'POST', ...init, headers });
      const { status } = response;
      const text = await response.text();
      return {
        status,
        headers: response.headers,
        body: text === '' ? {} : (JSON.parse(text) as HttpAnswer['body']),
      };
    },

    /** Posts as an honest device does. */
    post(
      topic: string,
      body: unknown,
      more: { as?: As; type?: string; headers?: Record<string, string> } = {},
    ): Promise<HttpAnswer> {
      const { as = device, type = 'application/json', headers = {} } = more;
      return this.send(this.pathOf(topic, as), {
        headers: { authorization: this.basic(as), 'content-type': type, ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      });
    },

    /** Writes raw bytes. Returns everything received until the connection ended. */
    async raw(...pieces: string[]): Promise<string> {
      const socket = await this.dial();
      let said = '';
      socket.on('data', (chunk: Buffer) => (said += chunk.toString('latin1')));
      for (const piece of pieces) socket.write(piece, 'latin1');
      await once(socket, 'close');
      return said;
    },

    async dial(): Promise<Socket> {
      const socket = connect({ host: '127.0.0.1', port: server.port });
      socket.on('error', () => {});
      sockets.push(socket);
      await once(socket, 'connect');
      return socket;
    },

    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await connector.close({ drainMs: 0 });
      await server.close(0);
      await store.bus.close();
    },
  };
}
