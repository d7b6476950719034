import { randomUUID } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { MemoryBudget } from '../../src/lib/fair-budget.ts';
import { forEachYielding, yieldToEventLoop } from '../../src/lib/event-loop.ts';
import { waitUntil } from '../../src/lib/wait.ts';
import { createDownlinkBudget } from '../device/downlinks.ts';
import { DeviceLimits, type SharedLimits } from '../device/limits.ts';
import { createReceiver } from '../device/receive.ts';
import { createForeignTopicLog, createRefusedLoginLog } from '../device/refused-logins.ts';
import {
  type ConnectorOptions,
  type ConnectorPorts,
  defaultTuning,
  isUnavailableError,
  type Log,
  type Observer,
  type Tuning,
} from '../ports.ts';
import { type Admission, createAdmission } from './admission.ts';
import { DeviceAedes } from './aedes.ts';
import { type Authenticator, createAuthenticator } from './connect.ts';
import type { Connection } from './connection.ts';
import { createConnections, startTimeouts } from './lifecycle.ts';
import {
  createTrust,
  createWebSocketListener,
  type Listener,
  type ListenerDeps,
  listenTcp,
  listenTls,
} from './listeners.ts';
import {
  type Acknowledger,
  createAcknowledger,
  createUnackedBudget,
  type UnackedBudget,
} from './acknowledge.ts';
import { type AccountBackpressure, createAccountBackpressure } from './backpressure.ts';
import { createPublisher, type Publisher } from './publish.ts';
import {
  createIntake,
  createLargePackets,
  createRateGate,
  createReader,
  type Reader,
} from './read.ts';
import {
  createRegistry,
  type Registry,
  tellOfForeignTopic,
  tellOfTakeovers,
  tellOfTooLarge,
  tellOfUnacknowledged,
} from './sessions.ts';
import { acknowledge, authorizeForward, createSubscriber, type Subscriber } from './subscribe.ts';

type ConnectorSnapshot = {
  connections: number;
  devices: number;
  /** Connections that wait to be admitted. */
  waiting: number;
  /** Bytes of messages that wait for their commit. */
  unackedBytes: number;
  /** Bytes of packets that have begun and not ended. */
  midwayBytes: number;
};

export type Connector = {
  /** The ports that are listened on; null: none. */
  addresses: { tcp: { port: number } | null; tls: { port: number } | null };
  /** Handles an HTTP server's `upgrade` at `/mqtt`. */
  acceptWebSocket(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    /** The client's address, if a proxy named it; otherwise the peer's is used. */
    address?: string,
  ): void;
  snapshot(): ConnectorSnapshot;
  /** While paused, reads nothing from devices, not even a CONNECT, and drops nothing. */
  pause(isPaused: boolean): void;
  /** Whether the device is connected to this process. */
  isConnected(uuid: string): boolean;
  /** Reads the TLS certificate again and logs the result. Does nothing without MQTT over TLS. */
  reloadCertificate(): Promise<void>;
  /** When the TLS certificate expires, ms since 1970; null without MQTT over TLS. */
  certificateExpiresTs(): number | null;
  /** Accepts nothing new. Messages under way are stored and acknowledged within `drainMs`, or not acknowledged. */
  close(options: { drainMs: number }): Promise<void>;
};

/** Starts the listeners for devices: the device contract over MQTT 3.1.1 and 5, on TCP, TLS and WebSocket. */
export async function startConnector(
  options: ConnectorOptions & SharedLimits,
  ports: ConnectorPorts,
): Promise<Connector> {
  const { limits, log, now } = options;
  const parts = createParts(options, ports);
  const { tuning, observe, registry, reader, budget, backpressure, acknowledger, authenticator } =
    parts;
  const engine = await startAedes(parts, options);
  const runId = randomUUID().slice(0, 8);
  const connections = createConnections({ ...parts, engine, runId, now });
  const admission = createAdmission({
    ...limits,
    maxWaiting: tuning.maxWaitingConnections,
    places: options.places ?? null,
    now,
    onTooMany: () => observe.refused('too-many'),
  });
  const listenerDeps: ListenerDeps = {
    admission,
    handle: connections.open,
    log,
    handshakeTimeoutMs: limits.connectTimeoutMs,
    maxPacketBytes: limits.maxPacketBytes,
    isProxy: createTrust(options.trustedProxies ?? []),
    now,
  };
  const webSocket = createWebSocketListener(listenerDeps);
  const endTimeouts = startTimeouts({
    ...parts,
    limits,
    now,
    onUnacknowledged: (identity, topic) => tellOfUnacknowledged(ports, registry, identity, topic),
  });
  const endBusEvents = listenToBus({ ports, registry, doubt: authenticator.doubt, log });
  const listeners: Listener[] = [];

  async function close({ drainMs }: { drainMs: number }): Promise<void> {
    await Promise.all(listeners.map((listener) => listener.close()));
    admission.close();
    await drain({ registry, reader, budget, acknowledger }, drainMs);
    backpressure.stop();
    endBusEvents();
    endTimeouts();
    await new Promise<void>((resolve) => engine.close(resolve));
  }

  const listening = await listen(options, listenerDeps, listeners).catch(async (error: unknown) => {
    await close({ drainMs: 0 });
    throw error;
  });
  return {
    ...listening,
    acceptWebSocket: webSocket.accept,
    snapshot: () => snapshotOf(parts, admission),
    pause: reader.pause,
    isConnected: registry.isConnected,
    close,
  };
}

async function startAedes(
  { tuning, authenticator, publisher, subscriber }: Parts,
  { limits, log }: ConnectorOptions,
): Promise<DeviceAedes> {
  const engine = new DeviceAedes({
    connectTimeout: limits.connectTimeoutMs,
    maxTopicLevels: limits.maxTopicLevels,
    // The client identifiers that aedes sees are our own connection ids.
    maxClientsIdLength: Infinity,
    drainTimeout: tuning.drainTimeoutMs,
    preConnect(client, packet, done) {
      authenticator.prepare(client, packet);
      done(null, true);
    },
    authenticate: authenticator.authenticate,
    authorizePublish: publisher.acceptWill,
    authorizeSubscribe: subscriber.authorize,
    authorizeForward,
  });
  await engine.listen();
  engine.on('subscribe', (granted, client) => subscriber.onSubscribed(client, granted));
  engine.on('unsubscribe', (filters, client) => subscriber.onUnsubscribed(client, filters));
  engine.on('ack', (packet, client) => acknowledge(client, packet?.messageId));
  const events: EventEmitter = engine;
  events.on('error', (error: Error) =>
    log.error({ event: 'mqtt.library-failed', err: error }, 'The MQTT library failed.'),
  );
  return engine;
}

/** Adds each open listener to `listeners`, so that the caller can close them even if a later one fails. */
async function listen(
  { tcp, tls }: ConnectorOptions,
  deps: ListenerDeps,
  listeners: Listener[],
): Promise<Pick<Connector, 'addresses' | 'reloadCertificate' | 'certificateExpiresTs'>> {
  const addresses: Connector['addresses'] = { tcp: null, tls: null };
  if (tcp) {
    const listener = await listenTcp(tcp, deps);
    listeners.push(listener);
    addresses.tcp = { port: listener.port };
  }
  if (!tls)
    return { addresses, reloadCertificate: async () => {}, certificateExpiresTs: () => null };
  const listener = await listenTls(tls, deps);
  listeners.push(listener);
  addresses.tls = { port: listener.port };
  const { reload, expiresTs } = listener.certificate;
  return { addresses, reloadCertificate: reload, certificateExpiresTs: expiresTs };
}

const snapshotOf = (
  { registry, budget, reader }: Parts,
  admission: Admission,
): ConnectorSnapshot => ({
  connections: registry.connections.size,
  devices: registry.countDevices(),
  waiting: admission.countWaiting(),
  unackedBytes: budget.bytes(),
  midwayBytes: reader.midwayBytes(),
});

/** The objects of one connector that handle packets and connections: everything but its sockets. */
type Parts = {
  tuning: Tuning;
  observe: Observer;
  registry: Registry;
  budget: UnackedBudget;
  backpressure: AccountBackpressure;
  acknowledger: Acknowledger;
  publisher: Publisher;
  reader: Reader;
  authenticator: Authenticator;
  subscriber: Subscriber;
  /** Limits the memory for messages to devices. */
  downlinkBudget: MemoryBudget;
};

type Common = {
  options: ConnectorOptions;
  ports: ConnectorPorts;
  tuning: Tuning;
  observe: Observer;
  registry: Registry;
};

const silent: Omit<Observer, 'messages'> = {
  connected() {},
  refused() {},
  disconnected() {},
  acknowledged() {},
};

/** Creates the parts. Starts nothing. */
function createParts(options: ConnectorOptions & SharedLimits, ports: ConnectorPorts): Parts {
  const { limits, now } = options;
  const tuning = { ...defaultTuning, ...options.tuning };
  const observe = { ...silent, messages: new Map(), ...options.observe };
  const deviceLimits = options.deviceLimits ?? new DeviceLimits({ ports, limits, now });
  const { maxConnectionsPerDevice } = limits;
  const connectRate = { perSecond: limits.reconnectsPerSecond, burst: limits.reconnectsBurst };
  const registry: Registry = createRegistry({
    deviceLimits,
    connectRate,
    maxConnectionsPerDevice,
    ports,
    now,
    onTakeovers: (identity) => tellOfTakeovers(ports, registry, identity),
  });
  const common: Common = { options, ports, tuning, observe, registry };
  return {
    tuning,
    observe,
    registry,
    ...createUplinkParts({ ...common, deviceLimits }),
    ...createSessionParts(common),
  };
}

/** The parts that a message passes from the socket to ingest, and back to its acknowledgement. */
function createUplinkParts({
  options,
  ports,
  tuning,
  observe,
  deviceLimits,
}: Omit<Common, 'registry'> & { deviceLimits: DeviceLimits }): Pick<
  Parts,
  'budget' | 'backpressure' | 'acknowledger' | 'publisher' | 'reader'
> {
  const { limits, log, now } = options;
  const { clock, throttle, presence } = ports;
  const budget = createUnackedBudget(tuning.maxUnackedTotalBytes);
  const { rejectionsPerMessage } = limits;
  const receive = createReceiver({
    ports,
    deviceLimits,
    rejectionsPerMessage,
    observe,
    now,
  });
  const backpressure = createAccountBackpressure({
    throttle,
    tuning,
    clock,
    now,
    budget,
    receive,
  });
  const acknowledger = createAcknowledger({ ports, backpressure, observe, log, now });
  const logForeignTopic = createForeignTopicLog(log, now);
  const publisher = createPublisher({
    clock,
    deviceLimits,
    budget,
    acknowledger,
    backpressure,
    receive,
    tuning,
    now,
    onForeignTopic(device, message) {
      tellOfForeignTopic(ports, device, message);
      logForeignTopic(device.identity.uuid, message.topic);
    },
  });
  const reader = createReader({
    presence,
    limits,
    tuning,
    deviceLimits,
    now,
    budget,
    large: createLargePackets({ limits, tuning, now }),
    rateGate: createRateGate({ deviceLimits }),
    backpressure,
    intake: createIntake({ limits, publisher, deviceLimits }),
    writeAcksSoon: acknowledger.writeSoon,
  });
  return { budget, backpressure, acknowledger, publisher, reader };
}

/** The parts that let devices in and send them messages. */
function createSessionParts({
  options: { limits, log, now },
  ports,
  tuning,
  registry,
}: Common): Pick<Parts, 'authenticator' | 'subscriber' | 'downlinkBudget'> {
  const logRefused = createRefusedLoginLog(log, now, 'mqtt');
  const { maxUnackedMessages } = tuning;
  const authenticator = createAuthenticator({
    ports,
    registry,
    limits,
    maxUnackedMessages,
    log,
    logRefused,
  });
  const downlinkBudget = createDownlinkBudget(tuning.maxDownlinkBytes);
  const downlinkDeps = {
    ports,
    log,
    maxQueued: tuning.maxQueuedDownlinks,
    budget: downlinkBudget,
  };
  const subscriber = createSubscriber(limits, downlinkDeps, {
    now,
    clock: ports.clock,
    onTooLarge: ({ identity }, packet) => tellOfTooLarge(ports, registry, identity, packet),
  });
  return { authenticator, subscriber, downlinkBudget };
}

type BusEventDeps = {
  ports: ConnectorPorts;
  registry: Registry;
  /** Access of this device (without one: of any device) changed: logins being checked are checked again. */
  doubt: (uuid?: string) => void;
  log: Log;
};

const recheckIntervalMs = 500;
/** How many connections are closed before other work gets a turn of the event loop. */
const closedInTurn = 100;

/** Subscribes to what other parts of the installation report. Returns a function that ends the subscriptions. */
function listenToBus({ ports, registry, doubt, log }: BusEventDeps): () => void {
  /** Connections whose access has yet to be checked. */
  const unsure = new Set<Connection>();
  let isChecking = false;

  async function recheck(): Promise<void> {
    if (isChecking) return;
    isChecking = true;
    for (const connection of unsure) {
      unsure.delete(connection);
      try {
        await endLostAccess([connection], ports);
      } catch (error) {
        unsure.add(connection);
        if (isUnavailableError(error)) break;
        log.error(
          { event: 'access.unchecked', err: error },
          'The service could not check whether devices may stay connected; it will try again.',
        );
        break;
      }
    }
    isChecking = false;
  }

  function suspect(connections: Iterable<Connection>): void {
    for (const connection of connections) if (connection.device) unsure.add(connection);
    void recheck();
  }

  /** Closes an account's connections without asking for each device: there may be ten thousand. */
  async function shutOut(accountId: number): Promise<void> {
    doubt();
    let closed = 0;
    for (const connection of registry.connections) {
      if (connection.device?.identity.accountId !== accountId) continue;
      connection.close('access-ended');
      closed += 1;
      if (closed % closedInTurn === 0) await yieldToEventLoop();
    }
  }

  const timer = setInterval(() => void recheck(), recheckIntervalMs);
  const { bus } = ports;
  const ends = [
    ports.onAccountDisabled((accountId) => void shutOut(accountId)),
    bus.subscribe('device', ({ uuid, push }) => {
      if (!push) return;
      for (const connection of registry.listConnectionsOf(uuid)) connection.downlinks?.due(push);
    }),
    bus.subscribe('due', ({ uuid, topic }) => {
      for (const connection of registry.listConnectionsOf(uuid)) connection.downlinks?.due(topic);
    }),
    bus.subscribe('down', ({ uuid, message }) => {
      for (const connection of registry.listConnectionsOf(uuid))
        connection.downlinks?.push(message);
    }),
    bus.subscribe('access', ({ uuid }) => {
      doubt(uuid);
      suspect(registry.listConnectionsOf(uuid));
    }),
    bus.subscribe('session', ({ uuid, clientId, connection }) =>
      registry.closeSessionsBut(uuid, clientId, connection),
    ),
    bus.subscribe('resync', () => {
      suspect(registry.connections);
      void forEachYielding(registry.connections, ({ downlinks }) => {
        downlinks?.due('profile');
        downlinks?.due('configuration');
        downlinks?.due('display');
        downlinks?.due('command');
      }).catch((error: unknown) =>
        log.error(
          { event: 'downlink.unread', err: error },
          'The messages due for the connected devices could not be read.',
        ),
      );
    }),
  ];
  return () => {
    clearInterval(timer);
    for (const end of ends) end();
  };
}

/** Closes connections whose device, token or account is gone. */
async function endLostAccess(
  connections: Connection[],
  ports: Pick<ConnectorPorts, 'isStillAllowed'>,
): Promise<void> {
  for (const connection of connections) {
    const { device, credentials } = connection;
    if (!device || !credentials) continue;
    if (!(await ports.isStillAllowed(device.identity, credentials)))
      connection.close('access-ended');
  }
}

/** The longest time given to the last acknowledgements to leave; half of a short drain. */
const longestFlushMs = 1_000;

/**
 * Stops reading, waits for messages under way to be stored and acknowledged, and closes all connections, within
 * `drainMs`. A message that was not stored in time is not acknowledged. Messages that may be stored twice without harm
 * stay with the store, which stops later. No wills are published: the service goes away, not the devices.
 */
async function drain(
  {
    registry,
    reader,
    budget,
    acknowledger,
  }: {
    registry: Registry;
    reader: Reader;
    budget: UnackedBudget;
    acknowledger: Acknowledger;
  },
  drainMs: number,
) {
  const flushMs = Math.min(longestFlushMs, drainMs / 2);
  reader.stop();
  acknowledger.readsEnd(registry.connections);
  await waitUntil(() => budget.bytes() === 0, drainMs - flushMs);
  acknowledger.readsEnd(registry.connections);
  await forEachYielding(registry.connections, (connection) => {
    // Sends a DISCONNECT.
    if (connection.v5) connection.close('shutdown');
    connection.ending ??= 'shutdown';
    acknowledger.withdraw(connection);
    connection.socket.end(() => connection.socket.destroy());
  });
  await waitUntil(() => registry.connections.size === 0, flushMs);
  await forEachYielding(registry.connections, (connection) => connection.close('shutdown'));
}
