import { createLargeRoom } from '../device/large-room.ts';
import { mostMeasurementBytes, type ConnectorLimits, type Tuning } from '../options.ts';
import type { Connection, LargePacket } from './connection.ts';

export type LargePacketsOptions = {
  limits: Pick<ConnectorLimits, 'maxPacketBytes' | 'maxMeasurementPacketBytes'>;
  tuning: Pick<Tuning, 'maxLargeBytes' | 'largeTimeoutMs'>;
  now: () => number;
};

export type LargePackets = {
  /** Where the connection's packets may be large; null: nowhere. */
  topicOf(connection: Connection): string | null;
  /** Of the bytes that its scanner has gone through: a large packet may have ended or begun. */
  follow(connection: Connection): void;
  /** Whether the body of its packet has no room yet; it is resumed when it has. */
  mustWait(connection: Connection): boolean;
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
    topicOf: ({ device, isWebSocket }) =>
      areTaken && device && !isWebSocket ? `${device.upPrefix}measurements` : null,

    follow(connection) {
      const { scanner, device } = connection;
      if (connection.large && (!scanner.isLarge || scanner.beganLarge)) forget(connection);
      if (scanner.beganLarge && device) begin(connection, device.identity.accountId);
    },

    mustWait: ({ large }) => large !== null && !large.place.isIn,
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
