import { createAccountRate } from './account-rate.ts';
import type { Rate } from '../device/rate-limit.ts';
import type { Connection, Device } from './connection.ts';
import type { ConnectorLimits, Tuning } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import { gateReads, wakeReader, type Read } from './read-gate.ts';
import { createUnackedRoom } from './unacked-room.ts';

export type Rates = { messages: Rate; measurements: Rate; others: Rate; connects: Rate };

export function ratesOf(limits: ConnectorLimits): Rates {
  const messages = { perSecond: limits.messagesPerSecond, burst: limits.messagesBurst };
  const perSecond = limits.measurementsPerSecond;
  const connects = { perSecond: limits.reconnectsPerSecond, burst: limits.reconnectsBurst };
  return { messages, measurements: { perSecond, burst: perSecond }, others: messages, connects };
}

export type FlowControlOptions = {
  ports: Pick<ConnectorPorts, 'othersWait' | 'measurementsPerSecond'>;
  limits: ConnectorLimits;
  tuning: Tuning;
  rates: Rates;
  now: () => number;
  /** Whether the account's devices may be read: `Holding`. */
  isHeldBack: (connection: Connection, device: Device) => boolean;
  /** Told, once a second at most, that something was read of a device. */
  onHeard: (device: Device) => void;
  /** Takes the messages that a chunk of whole packets begins with; gives what is left of it. */
  accept: (connection: Connection, chunk: Buffer) => Buffer | null;
};

const toldEveryMs = 1_000;

export type FlowControl = ReturnType<typeof createFlowControl>;

/**
 * Decides how much is read of which socket, and when. aedes takes all that a socket holds and starts
 * on all packets in it at once; here a read ends at the border of a packet, and gives nothing while
 * the connection, its device, its account or all of them together have too much under way.
 */
export function createFlowControl(options: FlowControlOptions) {
  const { ports, limits, tuning, rates, now, isHeldBack, onHeard, accept } = options;
  const room = createUnackedRoom(tuning.maxUnackedTotalBytes, resume);
  const accountRate = createAccountRate({ ports, resume, now });
  /** Those in the midst of a packet, the one that began first in front. */
  const midway = new Set<Connection>();
  let midwayBytes = 0;
  /** Not read while everything is paused. */
  const paused = new Set<Connection>();
  let isStopped = false;
  let isPaused = false;

  function mayRead(connection: Connection): boolean {
    const isOpening = connection.stage === 'opening';
    // One that has closed must not be remembered: nobody would forget it again.
    if (!isOpening && connection.stage !== 'ready') return false;
    if (isPaused) {
      paused.add(connection);
      return false;
    }
    if (isOpening) return true;
    if (isStopped) return false;
    if (connection.blockedSinceMs !== null) return false;
    if (connection.unacked.length >= tuning.maxUnackedMessages) return false;
    if (connection.unackedBytes >= tuning.maxUnackedBytes) return false;
    if (!room.isFor(connection)) return false;
    const { device } = connection;
    return (
      device === null ||
      !(
        isHeldBack(connection, device) ||
        mustWait(device) ||
        accountRate.mustWait(connection, device.account)
      )
    );
  }

  function mustWait(device: Device): boolean {
    if (device.timer) return true;
    const { messages, measurements, others } = device;
    if (messages.hasTokens && measurements.hasTokens && others.hasTokens) return false;
    const nowMs = now();
    const waitMs = Math.max(
      messages.waitMs(rates.messages, nowMs),
      measurements.waitMs(rates.measurements, nowMs),
      others.waitMs(rates.others, nowMs),
    );
    if (waitMs === 0) return false;
    device.timer = setTimeout(() => {
      device.timer = null;
      for (const connection of device.connections) resume(connection);
    }, waitMs);
    return true;
  }

  function take(connection: Connection, read: Read): Buffer | null {
    const { socket, scanner, device } = connection;
    const isBetween = scanner.isBetween;
    if (!mayRead(connection)) {
      connection.isStarved = true;
      return null;
    }
    const chunk = read();
    if (chunk === null) return null;
    const isOpening = connection.stage === 'opening';
    const most = isOpening ? 1 : tuning.maxUnackedMessages - connection.unacked.length;
    const end = scanner.advance(chunk, most, limits);
    if (end < 0) {
      connection.close('malformed');
      return null;
    }
    connection.heardMs = now();
    if (scanner.begunBytes !== connection.begunBytes) followBegun(connection, scanner.begunBytes);
    if (end < chunk.length) socket.unshift(chunk.subarray(end));
    if (isOpening && scanner.isBetween) connection.stage = 'authenticating';
    if (device) charge(device, connection);
    const taken = end < chunk.length ? chunk.subarray(0, end) : chunk;
    return isBetween && !isOpening ? accept(connection, taken) : taken;
  }

  /** A device may send slowly; many that never end a packet may not fill the memory. */
  function followBegun(connection: Connection, begunBytes: number): void {
    const { publishes, others } = connection.scanner;
    midwayBytes += begunBytes - connection.begunBytes;
    connection.begunBytes = begunBytes;
    if (begunBytes === 0 || publishes + others > 0) midway.delete(connection);
    if (begunBytes > 0) midway.add(connection);
    for (const first of midway) {
      if (midwayBytes <= tuning.maxBegunBytes) return;
      forgetBegun(first);
      first.close('unfinished');
    }
  }

  function forgetBegun(connection: Connection): void {
    midwayBytes -= connection.begunBytes;
    connection.begunBytes = 0;
    midway.delete(connection);
  }

  function charge(device: Device, { scanner, heardMs }: Connection): void {
    device.messages.take(scanner.publishes, rates.messages, heardMs);
    if (scanner.others > 0) device.others.take(scanner.otherUnits, rates.others, heardMs);
    if (heardMs - device.toldMs < toldEveryMs) return;
    device.toldMs = heardMs;
    onHeard(device);
  }

  function resume(connection: Connection): void {
    if (!connection.isStarved || connection.stage === 'closed' || !mayRead(connection)) return;
    connection.isStarved = false;
    wakeReader(connection.socket);
  }

  return {
    /** Puts itself between the socket and whoever reads it. */
    attach(connection: Connection): void {
      gateReads(connection.socket, (read) => take(connection, read));
    },

    /** Lets a connection be read again, if nothing else holds it back. */
    resume,

    hold(connection: Connection, bytes: number): void {
      connection.unackedBytes += bytes;
      room.hold(connection, bytes);
    },

    release(connection: Connection, bytes: number): void {
      connection.unackedBytes -= bytes;
      room.release(connection, bytes);
    },

    /** What a device's connection holds is not under way: nobody else waits for it. */
    setAside: (device: Device, bytes: number): void => room.release({ device }, bytes),

    bringBack: (device: Device, bytes: number): void => room.hold({ device }, bytes),

    /** Reads nothing while it is told so; nothing that arrived is dropped. */
    pause(isToPause: boolean): void {
      isPaused = isToPause;
      for (const connection of isPaused ? [] : paused) {
        paused.delete(connection);
        resume(connection);
      }
    },

    forget(connection: Connection): void {
      paused.delete(connection);
      forgetBegun(connection);
      room.forget(connection);
      accountRate.forget(connection);
      const { device } = connection;
      if (device?.timer && device.connections.length === 0) {
        clearTimeout(device.timer);
        device.timer = null;
      }
    },

    /** Nothing more is read, from anybody. */
    stop(): void {
      isStopped = true;
    },

    unackedBytes: room.bytes,
    midwayBytes: () => midwayBytes,
  };
}
