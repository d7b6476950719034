import { randomUUID } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { createAcknowledger } from './ack.ts';
import { createAdmission } from './admission.ts';
import { createAuthenticator } from './connect.ts';
import { createLargePackets } from './large-packets.ts';
import { createConnections } from './lifecycle.ts';
import { acknowledge, authorizeForward } from './deliver.ts';
import { createRateStore, type SharedRates } from '../device/device-rates.ts';
import { createDownlinkRoom } from '../device/downlink-room.ts';
import { drain } from './drain.ts';
import { tellOfTooLarge } from './excess.ts';
import { DeviceAedes } from './aedes.ts';
import { createHeldMessages } from './held-messages.ts';
import { createWebSocketListener, listenTcp, listenTls, type Listener } from './listeners.ts';
import { listenToBus } from './bus-events.ts';
import { defaultTuning, type ConnectorOptions, type Observer } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import { createTrust } from './proxy-protocol.ts';
import { createPassOn, createPublisher } from './publish.ts';
import { createRateGate } from './rate-gate.ts';
import { createReader } from './read.ts';
import { createRefusedLoginLog } from '../device/refused-logins.ts';
import { createRegistry } from './registry.ts';
import { createSubscriber } from './subscribe.ts';
import { startTimeouts } from './timeouts.ts';
import { createUnackedRoom } from './unacked-room.ts';
import { createIntake } from './v5-intake.ts';

type ConnectorSnapshot = {
  connections: number;
  devices: number;
  /** Connections that wait for their turn to be let in. */
  waiting: number;
  /** Bytes of messages that wait for their commit. */
  unackedBytes: number;
  /** Bytes of packets that have begun and not ended. */
  midwayBytes: number;
};

export type Connector = {
  /** The ports that are really listened on; null where none is. */
  addresses: { tcp: { port: number } | null; tls: { port: number } | null };
  /** For an HTTP server's `upgrade` at `/mqtt`. */
  acceptWebSocket(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    /** The client's, where a proxy named it; otherwise the peer's. */
    address?: string,
  ): void;
  snapshot(): ConnectorSnapshot;
  /** Reads nothing from devices, not even a CONNECT, while it is told true; drops nothing either. */
  pause(isPaused: boolean): void;
  /** Whether the device is connected here. */
  isConnected(uuid: string): boolean;
  /** Reads the certificate again, where MQTT over TLS is listened on; logs what came of it. */
  reloadCertificate(): Promise<void>;
  /** Takes nothing new; what is under way is stored and acknowledged, or neither, within `drainMs`. */
  close(options: { drainMs: number }): Promise<void>;
};

const silent: Observer = {
  connected() {},
  refused() {},
  disconnected() {},
  message() {},
  acknowledged() {},
};

/** Where devices come in: the device contract over MQTT 3.1.1 and 5 on TCP, TLS and WebSocket. */
export async function startConnector(
  options: ConnectorOptions & SharedRates,
  ports: ConnectorPorts,
): Promise<Connector> {
  const { limits, log, now } = options;
  const tuning = { ...defaultTuning, ...options.tuning };
  const observe = { ...silent, ...options.observe };
  const rateStore = options.rateStore ?? createRateStore({ ports, limits, now });
  const { clock, holds, presence } = ports;
  const { maxConnectionsPerDevice } = limits;
  const connectRate = { perSecond: limits.reconnectsPerSecond, burst: limits.reconnectsBurst };
  const registry = createRegistry({
    rateStore,
    connectRate,
    maxConnectionsPerDevice,
    ports,
    now,
  });
  const room = createUnackedRoom(tuning.maxUnackedTotalBytes);
  const rateGate = createRateGate({ rateStore, now });
  const passOn = createPassOn({ ports, rateStore, limits, observe, now });
  const holding = createHeldMessages({ holds, tuning, clock, now, room, passOn });
  const acknowledger = createAcknowledger({ ports, room, holding, observe, log, now });
  const publisher = createPublisher({ clock, room, acknowledger, holding, passOn, tuning, now });
  const reader = createReader({
    presence,
    limits,
    tuning,
    rateStore,
    now,
    room,
    large: createLargePackets({ limits, tuning, now }),
    rateGate,
    holding,
    publisher,
    intake: createIntake({ limits, publisher, rateStore }),
  });
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
  const downlinkDeps = {
    ports,
    log,
    maxQueued: tuning.maxQueuedDownlinks,
    room: createDownlinkRoom(tuning.maxDownlinkBytes),
  };
  const subscriber = createSubscriber(limits, downlinkDeps, {
    now,
    clock,
    onTooLarge: ({ identity }, packet) => tellOfTooLarge(ports, registry, identity, packet),
  });

  const engine = new DeviceAedes({
    connectTimeout: limits.connectTimeoutMs,
    maxTopicLevels: limits.maxTopicLevels,
    // Identifiers are ours.
    maxClientsIdLength: Infinity,
    drainTimeout: tuning.drainTimeoutMs,
    preConnect(client, packet, done) {
      authenticator.prepare(client, packet);
      done(null, true);
    },
    authenticate: authenticator.authenticate,
    authorizePublish: publisher.accept,
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

  const runId = randomUUID().slice(0, 8);
  const connections = createConnections({
    engine,
    runId,
    registry,
    reader,
    holding,
    acknowledger,
    observe,
    now,
  });
  const admission = createAdmission({
    ...limits,
    maxWaiting: tuning.maxWaitingConnections,
    now,
    onTooMany: () => observe.refused('too-many'),
  });
  const listenerDeps = {
    admission,
    handle: connections.open,
    log,
    handshakeTimeoutMs: limits.connectTimeoutMs,
    maxPacketBytes: limits.maxPacketBytes,
    isProxy: createTrust(options.trustedProxies ?? []),
    now,
  };
  const webSocket = createWebSocketListener(listenerDeps);
  const endSweeping = startTimeouts({ registry, acknowledger, limits, tuning, now });
  const endNotices = listenToBus({ ports, registry, doubt: authenticator.doubt, log });
  const listeners: Listener[] = [];

  async function close({ drainMs }: { drainMs: number }): Promise<void> {
    await Promise.all(listeners.map((listener) => listener.close()));
    admission.close();
    await drain({ registry, reader, room, acknowledger }, drainMs);
    holding.stop();
    endNotices();
    endSweeping();
    await new Promise<void>((resolve) => engine.close(resolve));
  }

  const addresses: Connector['addresses'] = { tcp: null, tls: null };
  let reloadCertificate = async () => {};
  try {
    if (options.tcp) {
      const listener = await listenTcp(options.tcp, listenerDeps);
      listeners.push(listener);
      addresses.tcp = { port: listener.port };
    }
    if (options.tls) {
      const listener = await listenTls(options.tls, listenerDeps);
      listeners.push(listener);
      addresses.tls = { port: listener.port };
      reloadCertificate = listener.reloadCertificate;
    }
  } catch (error) {
    await close({ drainMs: 0 });
    throw error;
  }

  return {
    addresses,
    acceptWebSocket: webSocket.accept,
    snapshot: () => ({
      connections: registry.connections.size,
      devices: registry.countDevices(),
      waiting: admission.countWaiting(),
      unackedBytes: room.bytes(),
      midwayBytes: reader.midwayBytes(),
    }),
    pause: reader.pause,
    isConnected: registry.isConnected,
    reloadCertificate: () => reloadCertificate(),
    close,
  };
}
