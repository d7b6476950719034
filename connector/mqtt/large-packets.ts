import { createLargeRoom } from '../device/large-room.ts';
import { mostMeasurementBytes, type ConnectorLimits, type Tuning } from '../options.ts';
import type { Connection, LargePacket } from './connection.ts';

export type LargePacketsOptions = {
  limits: Pick<ConnectorLimits, 'maxPacketBytes' | 'maxMeasurementPacketBytes'>;
  tuning: Pick<Tuning, 'maxLargeBytes' | 'largeTimeoutMs'>;
  now: () => number;
};

export type LargePackets = {
  /** Whether measurements may be larger than other packets. */
  readonly areTaken: boolean;
  /**
   * Of a connection whose large packet is under way, or has just begun: it may have ended. While its body has no room
   * (`place.isIn`) the connection is not to be read; it is resumed when it has.
   */
  follow(connection: Connection): void;
  forget(connection: Connection): void;
  bytes(): number;
};

/**
 * Messages of measurements that are larger than other packets may be. Each is charged to its account as a whole
 * before its body is read, and has to be whole in time.
 */
export function createLargePackets({ limits, tuning, now }: LargePacketsOptions): LargePackets {
  const room = createLargeRoom(tuning.maxLargeBytes);
  const areTaken = mostMeasurementBytes(limits) > limits.maxPacketBytes;

  function begin(connection: Connection, accountId: number): void {
    const place = room.enter(accountId, connection.scanner.wholeBytes, () => {
      packet.sinceMs = now();
      connection.resume();
    });
    const packet: LargePacket = { place, sinceMs: place.isIn ? now() : Infinity };
    connection.large = packet;
  }

  function forget(connection: Connection): void {
    const { large } = connection;
    connection.large = null;
    large?.place.leave();
  }

  return {
    areTaken,

    follow(connection) {
      const { scanner, device } = connection;
      if (connection.large && (!scanner.isLarge || scanner.beganLarge)) forget(connection);
      if (scanner.beganLarge && device) begin(connection, device.identity.accountId);
    },

    forget,
    bytes: room.bytes,
  };
}

/** Whether it took so long to become whole that its room is needed for others. */
export const isTooSlow = (
  { large }: Pick<Connection, 'large'>,
  { largeTimeoutMs }: Pick<Tuning, 'largeTimeoutMs'>,
  nowMs: number,
): boolean => large !== null && nowMs - large.sinceMs > largeTimeoutMs;
