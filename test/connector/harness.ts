import { once } from 'node:events';
import { connect as connectSocket, type Socket } from 'node:net';
import { connect as connectMqtt, type IClientOptions, type MqttClient } from 'mqtt';
import { startConnector, type Connector } from '../../connector/mqtt/server.ts';
import type { ConnectorOptions, ConnectorPorts, Observer } from '../../connector/ports.ts';
import type { LogEvent } from '../../src/log/events.ts';
import type { Write } from '../../src/log/logger.ts';
import { createStore } from './store.ts';
import { monotonicClock } from '../../src/lib/clock.ts';

export const limits: ConnectorOptions['limits'] = {
  maxPacketBytes: 65_536,
  maxMeasurementPacketBytes: null,
  maxConnectBytes: 4_096,
  connectTimeoutMs: 10_000,
  maxKeepaliveSeconds: 3_600,
  maxConnectionsPerDevice: 4,
  maxSubscriptions: 16,
  maxTopicLevels: 8,
  messagesPerSecond: 100,
  messagesBurst: 1_000,
  measurementsPerSecond: 1_000,
  connectsPerSecond: 2_000,
  connectingPerAddress: 50,
  waitingPerAddress: 2_000,
  refusedLoginsPerSecond: 200,
  reconnectsPerSecond: 2,
  reconnectsBurst: 120,
  storeTimeoutMs: 10_000,
  rejectionsPerMessage: 10,
};

/** The version of MQTT that tests speak unless they name one. v5.test.ts runs the same tests again. */
export const wire: { version: 4 | 5 } = { version: 4 };

/** Waits for the condition itself. */
export async function until(condition: () => boolean, what = 'the condition'): Promise<void> {
  const endMs = performance.now() + 60_000;
  while (!condition()) {
    if (performance.now() > endMs) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** A clock that only the test moves. */
export function manualClock() {
  let looked = 0;
  const clock = {
    monotonicMs: 0,
    now: () => {
      looked += 1;
      return clock.monotonicMs;
    },
    /** Resolves once the clock has been read this many more times. */
    looks: async (count: number) => {
      const enough = looked + count;
      await until(() => looked >= enough, 'looks at the clock');
    },
  };
  return clock;
}

export type World = Awaited<ReturnType<typeof startWorld>>;

export type WorldOptions = Partial<Omit<ConnectorOptions, 'limits'>> & {
  limits?: Partial<ConnectorOptions['limits']>;
  ports?: Partial<ConnectorPorts>;
};

/** A connector with a store of its own, and what the tests need to talk to it. */
export async function startWorld(options: WorldOptions = {}) {
  const { store, ports } = createStore();
  const device = store.addDevice(1);
  const counted: string[] = [];
  const logged: LogEvent[] = [];
  const log: Write = ({ event }) => {
    // What strangers do is not our fault.
    if (event === 'mqtt.login-refused' || event === 'mqtt.foreign-topic') return;
    logged.push(event);
  };
  const observe: Partial<Observer> = {
    connected: () => counted.push('connected'),
    refused: (reason) => counted.push(`refused ${reason}`),
    disconnected: (reason) => counted.push(`disconnected ${reason}`),
  };
  const connector: Connector = await startConnector(
    {
      tcp: { host: '127.0.0.1', port: 0 },
      tls: null,
      log: { info: log, warn: log, error: log },
      observe,
      now: monotonicClock,
      ...options,
      limits: { ...limits, ...options.limits },
      tuning: { sweepIntervalMs: 20, ...options.tuning },
    },
    { ...ports, ...options.ports },
  );
  const port = connector.addresses.tcp?.port ?? 0;
  const clients: MqttClient[] = [];
  const sockets: Socket[] = [];
  let isClosed = false;

  return {
    store,
    device,
    connector,
    port,
    counted,
    logged,

    /** Resolves once connected. Rejects with the CONNACK's code. */
    async connect(more: IClientOptions & { as?: { uuid: string; token: string } } = {}) {
      const client = this.open(more);
      await onceConnected(client);
      return client;
    },

    open({ as = device, ...more }: IClientOptions & { as?: { uuid: string; token: string } } = {}) {
      const client = connectMqtt({
        host: '127.0.0.1',
        port,
        protocolVersion: wire.version,
        username: as.uuid,
        password: as.token,
        reconnectPeriod: 0,
        connectTimeout: 5_000,
        ...more,
      });
      client.on('error', () => {});
      clients.push(client);
      return client;
    },

    /** A bare socket, for what no well-behaved client does. */
    async dial(to = port, localAddress = '127.0.0.1'): Promise<Socket> {
      const socket = connectSocket({ host: '127.0.0.1', port: to, localAddress });
      socket.on('error', () => {});
      sockets.push(socket);
      await once(socket, 'connect');
      return socket;
    },

    async close(drainMs = 0): Promise<void> {
      if (isClosed) return;
      isClosed = true;
      for (const client of clients) client.end(true);
      for (const socket of sockets) socket.destroy();
      await connector.close({ drainMs });
      await store.bus.close();
    },
  };
}

function onceConnected(client: MqttClient): Promise<void> {
  return new Promise((resolve, reject) => {
    client.once('connect', () => resolve());
    client.once('error', reject);
    client.once('close', () => reject(new Error('closed before it was connected')));
  });
}

export const onceClosed = (client: MqttClient): Promise<void> =>
  new Promise((resolve) => client.once('close', () => resolve()));

/** Collects what is sent to a client. */
export function collect(client: MqttClient): { topic: string; payload: unknown; qos: number }[] {
  const messages: { topic: string; payload: unknown; qos: number }[] = [];
  client.on('message', (topic, payload, { qos }) => {
    messages.push({ topic, payload: JSON.parse(payload.toString()), qos });
  });
  return messages;
}
