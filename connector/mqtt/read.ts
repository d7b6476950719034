import process from 'node:process';
import type { ConnectorLimits, Tuning } from '../options.ts';
import type { DevicePorts } from '../ports.ts';
import type { Connection, Device } from './connection.ts';
import type { HeldMessages } from './held-messages.ts';
import type { LargePackets } from './large-packets.ts';
import { PacketBuffer } from './packet-buffer.ts';
import type { Asker } from '../../src/lib/fair-turns.ts';
import { LoopTurns } from '../../src/lib/event-loop.ts';
import type { RateStore } from '../device/rates.ts';
import type { RateGate } from './rate-gate.ts';
import { gateReads, wakeReader, type Read } from './read-gate.ts';
import type { UnackedRoom } from './unacked.ts';
import type { Intake } from './intake.ts';

export type ReaderOptions = {
  presence: DevicePorts['presence'];
  limits: ConnectorLimits;
  tuning: Tuning;
  rateStore: RateStore;
  now: () => number;
  /** Whether a connection may be read: memory, rates, and what its account may bring. */
  room: UnackedRoom;
  large: LargePackets;
  rateGate: RateGate;
  holding: Pick<HeldMessages, 'canReadOrWait'>;
  /** Takes whole packets. */
  intake: Intake;
  /** Told when it is read, also where nothing has come. */
  wasRead: (connection: Connection) => void;
};

const toldEveryMs = 1_000;

/**
 * How much one turn of the event loop reads from all connections together, in packets; each KiB counts as one more. Without a
 * bound a turn reads every socket that has data: 400 connections with 100 packets each would hold up everything else.
 */
const readPerTurn = 256;
/** Nor any longer of those that wait for their turn: packets that are refused cost most. */
const readMs = 2;

/** Reads connections. */
export type Reader = {
  /** Puts itself between the socket and whoever reads it. */
  attach(connection: Connection): void;
  /** Reads one that was starved, if nothing holds it back any more; for `Connection.resume`. */
  resume(connection: Connection): void;
  /** Reads nothing while it is told so; nothing that arrived is dropped. */
  pause(isToPause: boolean): void;
  forget(connection: Connection): void;
  /** Nothing more is read, from anybody. */
  stop(): void;
  /** Bytes of packets that have begun and not ended. */
  midwayBytes(): number;
};

/**
 * Decides how much is read of which socket, and when. aedes takes all that a socket holds and starts
 * on all packets in it at once; here a read ends at the border of a packet, and gives nothing while
 * the connection, its device, its account or all of them together have too much under way.
 */
export function createReader(options: ReaderOptions): Reader {
  const { presence, limits, tuning, rateStore, now, room, rateGate, holding } = options;
  const { large, intake, wasRead } = options;
  /** Connections with a packet that has begun and not ended, the one that began first in front. */
  const midway = new Set<Connection>();
  let midwayBytes = 0;
  /** Not read while everything is paused. */
  const paused = new Set<Connection>();
  let isStopped = false;
  let isPaused = false;
  const turns = new LoopTurns({ perTurn: readPerTurn, mostMs: readMs });

  function canReadOrWait(connection: Connection): boolean {
    // What it is told why it ends may still be on its way.
    if (connection.ending !== null || connection.scanner.isOver || connection.isBroken)
      return false;
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
    if (connection.large?.place.isIn === false || !room.isFor(connection)) return false;
    const { device } = connection;
    if (!device) return true;
    return holding.canReadOrWait(connection, device) && !rateGate.mustWait(connection, device);
  }

  /** Whether this turn of the loop reads it. If not, a later one does: accounts, and strangers' addresses, take turns. */
  function hasTurn(connection: Connection): boolean {
    if (connection.socket.readableLength === 0) return true;
    if (connection.turn === 'now') {
      connection.turn = null;
      return true;
    }
    if (connection.turn === 'waits') return false;
    if (turns.takeNow(0)) return true;
    connection.turn = 'waits';
    turns.wait(askerOf(connection), () => {
      connection.turn = 'now';
      connection.resume();
      if (connection.turn === 'now') connection.turn = null;
      return 0;
    });
    return false;
  }

  function take(connection: Connection, read: Read): Buffer | null {
    const { scanner, device } = connection;
    if (!canReadOrWait(connection) || !hasTurn(connection)) {
      connection.isStarved = true;
      return null;
    }
    const chunk = read();
    wasRead(connection);
    if (chunk === null) return null;
    connection.hasRead = true;
    connection.isStarved = false;
    const isOpening = connection.stage === 'opening';
    const most = tuning.maxUnackedMessages - connection.unacked.length;
    const mayBeLarge = large.areTaken && device && !connection.isWebSocket;
    const end = scanner.advance(chunk, most, limits, mayBeLarge ? device.largeTopic : null);
    turns.spend(scanner.publishes + scanner.others + (end >> 10));
    connection.heardMs = now();
    if (connection.large || scanner.beganLarge) large.follow(connection);
    const begunBytes = scanner.isLarge ? 0 : scanner.begunBytes;
    if (begunBytes !== connection.begunBytes) followBegun(connection, begunBytes);
    if (end < chunk.length && !scanner.isOver) putBack(connection, chunk.subarray(end));
    if (isOpening && scanner.isBetween && end > 0) connection.stage = 'authenticating';
    const taken = end < chunk.length ? chunk.subarray(0, end) : chunk;
    const whole = end > 0 ? takeWhole(connection, taken, isOpening) : null;
    if (scanner.isBroken) connection.breakOff('malformed', scanner.fault);
    return whole;
  }

  /**
   * Node says 'readable' of what is put back, but not where the other side has ended its own: nobody would read the rest of
   * what a program sent before it closed its socket.
   */
  function putBack(connection: Connection, rest: Buffer): void {
    connection.socket.unshift(rest);
    connection.isStarved = true;
    process.nextTick(() => connection.resume());
  }

  /** Charges the device, and gives aedes what it is to read of the packets that are whole. Others are kept until they are. */
  function takeWhole(connection: Connection, chunk: Buffer, isOpening: boolean): Buffer | null {
    const { device } = connection;
    if (device) charge(device, connection);
    const { begunBytes, wholeBytes } = connection.scanner;
    let whole: Buffer | null = chunk;
    if (connection.packets || begunBytes > 0) {
      connection.packets ??= new PacketBuffer();
      whole = connection.packets.take(chunk, begunBytes, wholeBytes);
      if (begunBytes === 0) connection.packets = null;
    }
    if (whole === null) return null;
    return isOpening
      ? intake.takeConnect(connection, whole)
      : intake.takePackets(connection, whole);
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
    const { rates } = device;
    rateStore.takeMessages(rates, scanner.publishes, heardMs);
    if (scanner.others > 0) rateStore.takeOthers(rates, scanner.otherUnits, heardMs);
    if (heardMs - device.toldMs < toldEveryMs) return;
    device.toldMs = heardMs;
    presence(device.identity, 'seen');
  }

  function resume(connection: Connection): void {
    if (!canReadOrWait(connection)) return;
    connection.isStarved = false;
    wakeReader(connection.socket);
  }

  const reader: Reader = {
    attach(connection: Connection): void {
      connection.reader = reader;
      gateReads(connection.socket, (read) => take(connection, read), limits.storeTimeoutMs);
    },

    resume,

    pause(isToPause: boolean): void {
      isPaused = isToPause;
      for (const connection of isPaused ? [] : paused) {
        paused.delete(connection);
        connection.resume();
      }
    },

    forget(connection: Connection): void {
      paused.delete(connection);
      forgetBegun(connection);
      large.forget(connection);
      room.forget(connection);
      rateGate.forget(connection);
    },

    stop(): void {
      isStopped = true;
    },

    midwayBytes: () => midwayBytes + large.bytes(),
  };
  return reader;
}

function askerOf({ device, entry, id }: Connection): Asker {
  if (device)
    return { address: `account ${device.account.id}`, who: `${device.identity.deviceId}` };
  return { address: entry.address, who: id };
}
