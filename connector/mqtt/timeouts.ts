import type { ByteRoom } from '../../src/lib/byte-room.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { Connection } from './connection.ts';
import type { ConnectorLimits, Tuning } from '../options.ts';
import type { Acknowledger } from './inflight.ts';
import { isTooSlow } from './large-packets.ts';
import type { Registry } from './sessions.ts';

export type TimeoutDeps = {
  registry: Pick<Registry, 'connections' | 'forgetIdle'>;
  acknowledger: Pick<Acknowledger, 'giveUpLate'>;
  /** Of what is on its way to devices. */
  downlinkRoom: Pick<ByteRoom, 'isWanted'>;
  limits: ConnectorLimits;
  tuning: Tuning;
  now: () => number;
  /** A device did not acknowledge a message of this topic in time. */
  onUnacknowledged: (identity: DeviceIdentity, topic: string) => void;
};

/** One look at all connections now and then, instead of timers for each. Returns what ends it. */
export function startTimeouts(deps: TimeoutDeps): () => void {
  const { registry, acknowledger, downlinkRoom, limits, now } = deps;
  const timer = setInterval(() => {
    const nowMs = now();
    const { downlinkTimeoutMs, wantedDownlinkTimeoutMs } = deps.tuning;
    const tuning = {
      ...deps.tuning,
      // What is not acknowledged is in the way of others: it is read again when its device comes back.
      downlinkTimeoutMs: downlinkRoom.isWanted ? wantedDownlinkTimeoutMs : downlinkTimeoutMs,
    };
    for (const connection of registry.connections) visit(connection, nowMs, { ...deps, tuning });
    acknowledger.giveUpLate(registry.connections, limits.storeTimeoutMs);
    registry.forgetIdle();
  }, deps.tuning.sweepIntervalMs);
  return () => clearInterval(timer);
}

function visit(
  connection: Connection,
  nowMs: number,
  { limits: { storeTimeoutMs }, tuning, onUnacknowledged }: TimeoutDeps,
): void {
  const { device, sent, blockedSinceMs, downlinks, keepaliveMs, stage } = connection;
  if (stage === 'authenticating' && nowMs - connection.heardMs > storeTimeoutMs) {
    connection.refusal ??= 'unavailable';
    connection.close('not-stored');
  }
  if (stage !== 'ready') return;
  // Nothing was heard because its socket is not read. (Where only its account has to wait, it is.)
  const waitsForStore = (connection.unacked[0]?.sinceMs ?? Infinity) < Infinity;
  if (connection.isStarved || waitsForStore) connection.heardMs = nowMs;
  // One and a half times the keep-alive. [MQTT-3.1.2-24]
  if (nowMs - connection.heardMs > keepaliveMs * 1.5) connection.close('keepalive');
  if (isTooSlow(connection, tuning, nowMs)) connection.close('unfinished');
  if (sent && nowMs - sent.sinceMs > tuning.downlinkTimeoutMs) {
    if (device && connection.ending === null) onUnacknowledged(device.identity, sent.topic);
    connection.close('unread');
  }
  if (blockedSinceMs !== null && nowMs - blockedSinceMs > tuning.drainTimeoutMs)
    connection.close('unread');
  downlinks?.retry();
}
