import { randomUUID } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { SharedRates } from '../device/rates.ts';
import type { ConnectorOptions } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import { createAdmission, type Admission } from './admission.ts';
import { DeviceAedes } from './aedes.ts';
import { listenToBus } from './bus-events.ts';
import { acknowledge, authorizeForward } from './deliver.ts';
import { drain } from './drain.ts';
import { createConnections } from './lifecycle.ts';
import { createWebSocketListener, listenTcp, listenTls } from './listeners.ts';
import type { Listener, ListenerDeps } from './listeners.ts';
import { createParts, type Parts } from './parts.ts';
import { createTrust } from './proxy-protocol.ts';
import { tellOfUnacknowledged } from './excess.ts';
import { startTimeouts } from './timeouts.ts';

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
  /** When the certificate of MQTT over TLS ends, ms since 1970; null where there is none. */
  certificateExpiresTs(): number | null;
  /** Takes nothing new; what is under way is stored and acknowledged, or neither, within `drainMs`. */
  close(options: { drainMs: number }): Promise<void>;
};

/** Where devices come in: the device contract over MQTT 3.1.1 and 5 on TCP, TLS and WebSocket. */
export async function startConnector(
  options: ConnectorOptions & SharedRates,
  ports: ConnectorPorts,
): Promise<Connector> {
  const { limits, log, now } = options;
  const parts = createParts(options, ports);
  const { tuning, observe, registry, reader, room, holding, acknowledger, authenticator } = parts;
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
    await drain({ registry, reader, room, acknowledger }, drainMs);
    holding.stop();
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
    // Identifiers are ours.
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

/** Puts into `listeners` what is to be closed, also where a later one fails. */
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
  { registry, room, reader }: Parts,
  admission: Admission,
): ConnectorSnapshot => ({
  connections: registry.connections.size,
  devices: registry.countDevices(),
  waiting: admission.countWaiting(),
  unackedBytes: room.bytes(),
  midwayBytes: reader.midwayBytes(),
});
