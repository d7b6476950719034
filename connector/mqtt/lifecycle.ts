import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Client } from 'aedes';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { MemoryBudget } from '../../src/lib/fair-budget.ts';
import type { ConnectorLimits, Observer, Tuning } from '../ports.ts';
import type { Acknowledger } from './acknowledge.ts';
import type { Admitted } from './admission.ts';
import { type DeviceAedes, readFailure } from './aedes.ts';
import type { AccountBackpressure } from './backpressure.ts';
import { Connection, findConnection, linkConnection } from './connection.ts';
import { isTooSlow, type Reader } from './read.ts';
import type { Registry } from './sessions.ts';
import { giveUpSent } from './subscribe.ts';
import type { MonotonicClock, MonotonicMs } from '../../src/lib/clock-readings.ts';

type ConnectionsDeps = {
  engine: DeviceAedes;
  /** Distinguishes this process's connections from those of all others. */
  runId: string;
  registry: Registry;
  reader: Reader;
  backpressure: Pick<AccountBackpressure, 'forgetConnection'>;
  acknowledger: Acknowledger;
  observe: Observer;
  now: MonotonicClock;
};

/** Turns byte streams into aedes clients, and cleans up when they end. */
export function createConnections(deps: ConnectionsDeps) {
  const { engine, runId, registry, reader, backpressure, acknowledger, observe, now } = deps;
  let count = 0;

  engine.on('clientReady', (client) => {
    const connection = findConnection(client);
    if (!connection || connection.stage === 'closed') return;
    connection.stage = 'ready';
    connection.entry.letIn();
    connection.heardMs = now();
    observe.connected();
    connection.resume();
  });
  engine.on('clientError', (client, error) => blame(client, error));
  engine.on('connectionError', (client, error) => blame(client, error));

  function onClose(connection: Connection): void {
    const wasReady = connection.stage === 'ready';
    connection.stage = 'closed';
    connection.entry.letIn();
    registry.remove(connection);
    reader.forget(connection);
    backpressure.forgetConnection(connection);
    acknowledger.withdraw(connection);
    giveUpSent(connection);
    if (wasReady) observe.disconnected(connection.ending ?? 'peer');
    else if (connection.refusal) observe.refused(connection.refusal);
    else if (connection.ending === 'malformed') observe.refused('malformed');
  }

  return {
    open(socket: Duplex, entry: Admitted, request?: IncomingMessage): void {
      if (socket.destroyed) return;
      const connection = new Connection(`${runId}.${(count += 1)}`, socket, entry, now());
      connection.isWebSocket = request !== undefined;
      linkConnection(connection);
      registry.connections.add(connection);
      socket.once('close', () => onClose(connection));
      reader.attach(connection);
      connection.client = engine.handle(socket, request);
    },
  };
}

/** Notes what aedes found wrong, for the metrics of refusals and endings. */
function blame(client: Client, error: Error): void {
  const connection = findConnection(client);
  if (!connection) return;
  const { refusal, ending } = readFailure(error);
  connection.refusal ??= refusal;
  connection.ending ??= ending;
}

type TimeoutDeps = {
  registry: Pick<Registry, 'connections' | 'forgetIdle'>;
  acknowledger: Pick<Acknowledger, 'giveUpLate'>;
  /** The memory budget for messages to devices. */
  downlinkBudget: Pick<MemoryBudget, 'isWanted'>;
  limits: ConnectorLimits;
  tuning: Tuning;
  now: MonotonicClock;
  /** A device did not acknowledge a message of this topic in time. */
  onUnacknowledged: (identity: DeviceIdentity, topic: string) => void;
};

/** Checks all connections at an interval, instead of a timer for each. Returns a function that stops it. */
export function startTimeouts(deps: TimeoutDeps): () => void {
  const { registry, acknowledger, downlinkBudget, limits, now } = deps;
  const timer = setInterval(() => {
    const monotonicMs = now();
    const { downlinkTimeoutMs, wantedDownlinkTimeoutMs } = deps.tuning;
    const tuning = {
      ...deps.tuning,
      // An unacknowledged message takes room that others wait for. It is read again when its device reconnects.
      downlinkTimeoutMs: downlinkBudget.isWanted ? wantedDownlinkTimeoutMs : downlinkTimeoutMs,
    };
    for (const connection of registry.connections)
      visit(connection, monotonicMs, { ...deps, tuning });
    acknowledger.giveUpLate(registry.connections, limits.storeTimeoutMs);
    registry.forgetIdle();
  }, deps.tuning.sweepIntervalMs);
  return () => clearInterval(timer);
}

function visit(
  connection: Connection,
  monotonicMs: MonotonicMs,
  { limits: { storeTimeoutMs }, tuning, onUnacknowledged }: TimeoutDeps,
): void {
  const { device, sent, blockedSinceMs, downlinks, keepaliveMs, stage } = connection;
  if (stage === 'authenticating' && monotonicMs - connection.heardMs > storeTimeoutMs) {
    connection.refusal ??= 'unavailable';
    connection.close('not-stored');
  }
  if (stage !== 'ready') return;
  // Nothing was heard because we do not read the socket. (If only its account has to wait, the socket is read.)
  const waitsForStore = (connection.unacked[0]?.sinceMs ?? Infinity) < Infinity;
  if (connection.isStarved || waitsForStore) connection.heardMs = monotonicMs;
  // Closes after one and a half times the keep-alive. [MQTT-3.1.2-24]
  if (monotonicMs - connection.heardMs > keepaliveMs * 1.5) connection.close('keepalive');
  if (isTooSlow(connection, tuning, monotonicMs)) connection.close('unfinished');
  if (sent && monotonicMs - sent.sinceMs > tuning.downlinkTimeoutMs) {
    if (device && connection.ending === null) onUnacknowledged(device.identity, sent.topic);
    connection.close('unread');
  }
  if (blockedSinceMs !== null && monotonicMs - blockedSinceMs > tuning.drainTimeoutMs)
    connection.close('unread');
  downlinks?.retry();
}
