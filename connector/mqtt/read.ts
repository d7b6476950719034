import process from 'node:process';
import { LoopScheduler } from '../../src/lib/event-loop.ts';
import type { Asker } from '../../src/lib/fair-queue.ts';
import { createLargeMessageBudget } from '../device/large-messages.ts';
import { type DeviceLimits, type DeviceRates, lookMs } from '../device/limits.ts';
import {
  type ConnectorLimits,
  type DevicePorts,
  mostMeasurementBytes,
  type Tuning,
} from '../ports.ts';
import type { UnackedBudget } from './acknowledge.ts';
import type { AccountBackpressure } from './backpressure.ts';
import { checkConnect, protocolOf, unspeakable } from './connect-packet.ts';
import type { AccountConnections, Connection, Device, LargePacket } from './connection.ts';
import { maxFilterBytes, PacketBuffer, readWholePublish } from './frames.ts';
import type { Publisher } from './publish.ts';
import { gateReads, type Read, wakeReader } from './read-gate.ts';
import {
  checkAck,
  checkDisconnect,
  type Checked,
  checkFilters,
  connackRefusal,
  type Frame,
  frameAt,
  reason,
  refused,
} from './v5.ts';
import type { MonotonicClock, MonotonicMs } from '../../src/lib/clock-readings.ts';

type ReaderOptions = {
  presence: DevicePorts['presence'];
  limits: ConnectorLimits;
  tuning: Tuning;
  deviceLimits: DeviceLimits;
  now: MonotonicClock;
  /** These decide whether a connection may be read: memory, rates, and what its account may send. */
  budget: UnackedBudget;
  large: LargePackets;
  rateGate: RateGate;
  backpressure: Pick<AccountBackpressure, 'canReadOrWait'>;
  /** Takes whole packets. */
  intake: Intake;
  /** Writes acknowledgements that wait for the connection to be read empty, if it is. */
  writeAcksSoon: (connection: Connection) => void;
};

const seenEveryMs = 1_000;

/**
 * How many packets one turn of the event loop reads from all connections together. Each KiB counts as one more. Without
 * a bound a turn would read every socket that has data: 400 connections with 100 packets each would delay everything
 * else.
 */
const readPerTurn = 256;
/** How long a turn reads the connections that wait for one. Refused packets take longer than their number suggests. */
const readMs = 2;

/** Reads connections. */
export type Reader = {
  /** Puts itself between the socket and its reader. */
  attach(connection: Connection): void;
  /** Reads a connection that was starved, if it may be read now. Called by `Connection.resume`. */
  resume(connection: Connection): void;
  /** While paused, reads nothing and drops nothing. */
  pause(isToPause: boolean): void;
  forget(connection: Connection): void;
  /** From now on nothing is read, from any device. */
  stop(): void;
  /** Bytes of packets that have begun and not ended. */
  midwayBytes(): number;
};

/**
 * Decides how much is read of which socket, and when. aedes takes everything that a socket holds and starts on all its
 * packets at once. Here a read ends at a packet boundary, and returns nothing while the connection, its device, its
 * account or all of them together have too much under way.
 */
export function createReader(options: ReaderOptions): Reader {
  const { presence, limits, tuning, deviceLimits, now, budget, rateGate, backpressure } = options;
  const { large, intake, writeAcksSoon } = options;
  /** Connections with a packet that has begun and not ended, the earliest first. */
  const midway = new Set<Connection>();
  let midwayBytes = 0;
  /** Connections to resume after a pause. */
  const paused = new Set<Connection>();
  let isStopped = false;
  let isPaused = false;
  const scheduler = new LoopScheduler({ mostPerTurn: readPerTurn, mostMs: readMs });

  function canReadOrWait(connection: Connection): boolean {
    // Its last packet may still be on its way.
    if (connection.ending !== null || connection.scanner.isOver || connection.isBroken)
      return false;
    const isOpening = connection.stage === 'opening';
    // A closed connection must not be added to any list below: nothing would remove it again.
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
    if (connection.large?.place.isIn === false || !budget.isFor(connection)) return false;
    const { device } = connection;
    if (!device) return true;
    return backpressure.canReadOrWait(connection, device) && !rateGate.mustWait(connection, device);
  }

  /**
   * Whether this turn of the event loop reads the connection. If not, a later one does: accounts take turns, and so do
   * the addresses of connections that are not logged in.
   */
  function mayReadNow(connection: Connection): boolean {
    if (connection.socket.readableLength === 0) return true;
    if (connection.readTurn === 'now') {
      connection.readTurn = null;
      return true;
    }
    if (connection.readTurn === 'waits') return false;
    if (scheduler.isOpen) return true;
    connection.readTurn = 'waits';
    scheduler.wait(askerOf(connection), () => {
      connection.readTurn = 'now';
      connection.resume();
      if (connection.readTurn === 'now') connection.readTurn = null;
      return 0;
    });
    return false;
  }

  function take(connection: Connection, read: Read): Buffer | null {
    const { scanner, device } = connection;
    if (!canReadOrWait(connection) || !mayReadNow(connection)) {
      connection.isStarved = true;
      return null;
    }
    const chunk = read();
    // Also if nothing arrived: then nothing more is to be waited for.
    if (connection.pubacks.length > 0) writeAcksSoon(connection);
    if (chunk === null) return null;
    connection.hasRead = true;
    connection.isStarved = false;
    const isOpening = connection.stage === 'opening';
    const most = tuning.maxUnackedMessages - connection.unacked.length;
    const mayBeLarge = large.areTaken && device && !connection.isWebSocket;
    const end = scanner.advance(chunk, most, limits, mayBeLarge ? device.largeTopic : null);
    scheduler.spend(scanner.publishes + scanner.others + (end >> 10));
    connection.heardMs = now();
    if (connection.large || scanner.beganLarge) large.follow(connection);
    const begunBytes = scanner.isLarge ? 0 : scanner.begunBytes;
    if (begunBytes !== connection.begunBytes) followBegun(connection, begunBytes);
    if (end < chunk.length && !scanner.isOver) unshiftRest(connection, chunk.subarray(end));
    if (isOpening && scanner.isBetween && end > 0) connection.stage = 'authenticating';
    const taken = end < chunk.length ? chunk.subarray(0, end) : chunk;
    const whole = end > 0 ? takeWhole(connection, taken, isOpening) : null;
    if (scanner.isBroken) connection.breakOff('malformed', scanner.fault);
    return whole;
  }

  /**
   * Unshifts the rest of a chunk. Node then emits 'readable', but not if the peer has ended its side: without the
   * `resume`, nobody would read the rest of what a program sent before it closed its socket.
   */
  function unshiftRest(connection: Connection, rest: Buffer): void {
    connection.socket.unshift(rest);
    connection.isStarved = true;
    process.nextTick(() => connection.resume());
  }

  /** Charges the device, and returns what aedes is to read of the whole packets. Keeps the rest until it is whole. */
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

  /** A device may send slowly, but many devices that never end a packet must not fill the memory. */
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
    const { otherUnits: others } = scanner;
    // A message is charged when it is received (device/receive.ts).
    if (others > 0) deviceLimits.charge(device.rates, { others }, heardMs);
    if (heardMs - device.seenReportedMs < seenEveryMs) return;
    device.seenReportedMs = heardMs;
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
      budget.forget(connection);
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

type LargePackets = {
  /** Whether measurements may be larger than other packets. */
  readonly areTaken: boolean;
  /**
   * Call this while a connection's large packet is being read or has just begun; it may have ended. While there is no
   * room for its body (`place.isIn`), the connection must not be read. It is resumed when there is.
   */
  follow(connection: Connection): void;
  forget(connection: Connection): void;
  bytes(): number;
};

/**
 * Messages of measurements that are larger than other packets may be. The whole size is charged to the account before
 * the body is read, and the packet has to be whole in time.
 */
export function createLargePackets({
  limits,
  tuning,
  now,
}: {
  limits: Pick<ConnectorLimits, 'maxPacketBytes' | 'maxMeasurementPacketBytes'>;
  tuning: Pick<Tuning, 'maxLargeBytes' | 'largeTimeoutMs'>;
  now: MonotonicClock;
}): LargePackets {
  const budget = createLargeMessageBudget(tuning.maxLargeBytes);
  const areTaken = mostMeasurementBytes(limits) > limits.maxPacketBytes;

  function begin(connection: Connection, accountId: number): void {
    const place = budget.enter(accountId, connection.scanner.wholeBytes, () => {
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
    bytes: budget.bytes,
  };
}

/** Whether a large packet has taken so long that others need its room. */
export const isTooSlow = (
  { large }: Pick<Connection, 'large'>,
  { largeTimeoutMs }: Pick<Tuning, 'largeTimeoutMs'>,
  monotonicMs: MonotonicMs,
): boolean => large !== null && monotonicMs - large.sinceMs > largeTimeoutMs;

type RateGate = ReturnType<typeof createRateGate>;

/** How many waiting devices one look checks. Checking all of them would cost more than it gains. */
const mostLooks = 200;

/**
 * Decides which connections are not read for a while: those of a device that is beyond its rates and may not catch up,
 * and those of an account that is beyond its measurements a second while messages of other accounts wait. While nobody
 * else waits, an account may send as much as it can.
 */
export function createRateGate({ deviceLimits }: { deviceLimits: DeviceLimits }) {
  /** Waiting devices that may go on early if nobody else needs the machine. */
  const hopeful = new Set<Device>();
  let looking: NodeJS.Timeout | null = null;

  function isPaused(device: Device): boolean {
    if (device.timer) return true;
    const waitMs = waitOrGoOn(device);
    if (waitMs === 0) return false;
    deviceLimits.countWait();
    device.timer = setTimeout(() => goOn(device), waitMs);
    if (deviceLimits.canCatchUp) {
      hopeful.add(device);
      looking ??= setInterval(look, lookMs);
    }
    return true;
  }

  /** In how many ms the device may be read; 0: now, beyond its rates if it may catch up. */
  function waitOrGoOn({ rates }: Device): number {
    return Math.max(deviceLimits.othersWaitMs(rates), deviceLimits.deviceWaitMs(rates));
  }

  function look(): void {
    let looks = Math.min(hopeful.size, mostLooks);
    for (const device of hopeful) {
      if (looks-- === 0) break;
      // Moves to the end, behind those that were not checked yet.
      hopeful.delete(device);
      if (waitOrGoOn(device) === 0) goOn(device);
      else hopeful.add(device);
    }
    endLooking();
  }

  function goOn(device: Device): void {
    stopWaiting(device);
    for (const connection of device.connections) connection.resume();
  }

  function stopWaiting(device: Device): void {
    if (device.timer) clearTimeout(device.timer);
    device.timer = null;
    hopeful.delete(device);
    endLooking();
  }

  function endLooking(): void {
    if (!looking || hopeful.size > 0) return;
    clearInterval(looking);
    looking = null;
  }

  type AccountRates = DeviceRates['account'];

  function wait(account: AccountConnections, rates: AccountRates, waitMs: number): void {
    account.timer ??= setTimeout(() => resumePaused(account, rates), Math.min(lookMs, waitMs));
  }

  function resumePaused(account: AccountConnections, rates: AccountRates): void {
    account.timer = null;
    for (const connection of account.paused) {
      const waitMs = deviceLimits.accountWaitMs(rates);
      if (waitMs > 0) return wait(account, rates, waitMs);
      account.paused.delete(connection);
      connection.resume();
    }
  }

  return {
    /** Whether the connection may not be read now; it is resumed when it may. */
    mustWait(connection: Connection, device: Device): boolean {
      if (!device.timer && areWithin(device.rates)) return false;
      if (isPaused(device)) return true;
      const { account, rates } = device;
      const waitMs = deviceLimits.accountWaitMs(rates.account);
      if (waitMs === 0) return false;
      account.paused.add(connection);
      wait(account, rates.account, waitMs);
      return true;
    },

    forget(connection: Connection): void {
      const { device } = connection;
      if (device?.timer && device.connections.length === 0) stopWaiting(device);
      const account = device?.account;
      if (!account?.paused.delete(connection) || account.paused.size > 0 || !account.timer) return;
      clearTimeout(account.timer);
      account.timer = null;
    },
  };
}

/** True for nearly all, so it is checked first. It needs no clock, because buckets only fill as time passes. */
function areWithin({ messages, measurements, others, account }: DeviceRates): boolean {
  const ofDevice = messages.tokens > 0 && measurements.tokens > 0 && others.tokens > 0;
  return ofDevice && account.measurements.tokens > 0;
}

/** This many bytes of properties count as a measurement: they take about as long to check. */
const bytesCountedAsMeasurement = 100;

/** The highest version of MQTT. */
const newest = 5;

/**
 * Takes whole packets of MQTT 3.1.1 and 5 alike. They are checked here byte by byte before aedes sees them, and aedes
 * gets them without properties, and no PUBLISH at all. So both versions follow the same rules, properties from
 * strangers reach no parser that builds objects of them, and a client of MQTT 5 learns why its connection is closed.
 */
export function createIntake({
  limits,
  publisher,
  deviceLimits,
}: {
  limits: Pick<ConnectorLimits, 'maxSubscriptions' | 'maxTopicLevels'>;
  publisher: Pick<Publisher, 'acceptLeading' | 'accept'>;
  deviceLimits: Pick<DeviceLimits, 'charge'>;
}) {
  const filterLimits = {
    maxFilterBytes: maxFilterBytes(limits.maxSubscriptions),
    maxTopicLevels: limits.maxTopicLevels,
  };

  /** What aedes gets of a whole CONNECT of any version; null: it was refused. */
  function takeConnect(connection: Connection, bytes: Buffer): Buffer | null {
    const frame = frameAt(bytes, 0);
    const { name = '', version = 0 } = protocolOf(bytes, frame) ?? {};
    // This includes versions with the highest bit set, which bridges between brokers use.
    if (name === 'MQTT' && version > newest) {
      connection.refusal = 'protocol-version';
      refuse(connection, reason.unsupportedVersion);
      return null;
    }
    const isV5 = name === 'MQTT' && version === newest;
    const isV3 = version === 3 || (name === 'MQTT' && version === 4);
    // A protocol that is not spoken here; aedes answers it.
    if (!isV5 && !isV3) return bytes;
    const { fault, bytes: stripped, session } = checkConnect(bytes, frame, isV5);
    if (stripped === null) {
      if (isV5) refuse(connection, fault);
      else refuseInSilence(connection);
      return null;
    }
    if (!isV5) return stripped;
    connection.v5 = session;
    connection.scanner.isV5 = true;
    return stripped;
  }

  /** [MQTT-3.1.4-1] */
  function refuseInSilence(connection: Connection): void {
    connection.refusal ??= 'malformed';
    connection.close('malformed');
  }

  function refuse(connection: Connection, code: number): void {
    // Not even a refusal fits into the client's maximum packet size. [MQTT-3.1.2-24]
    if (code === unspeakable) return refuseInSilence(connection);
    connection.refusal ??= 'malformed';
    connection.leave('malformed', connackRefusal(code));
  }

  /** Takes whole packets. Returns what aedes is to read of them. */
  function takePackets(connection: Connection, whole: Buffer): Buffer | null {
    // Takes nearly all packets, without an object for each part.
    const bytes = publisher.acceptLeading(connection, whole);
    if (bytes === null) return null;
    const rest: Buffer[] = [];
    for (let at = 0; at < bytes.length && !connection.isBroken;) {
      const frame = frameAt(bytes, at);
      if (frame.type === 3) publishOne(connection, bytes, frame);
      else {
        const checked = check(connection, bytes, frame, at);
        if (checked.fault) connection.breakOff('malformed', checked.fault);
        else if (checked.bytes) rest.push(checked.bytes);
      }
      at = frame.end;
    }
    if (rest.length === 0) return null;
    return rest.length === 1 ? (rest[0] as Buffer) : Buffer.concat(rest);
  }

  function publishOne(connection: Connection, bytes: Buffer, frame: Frame): void {
    const message = readWholePublish(bytes, frame, connection.v5 !== null);
    if (message.propertyBytes >= bytesCountedAsMeasurement)
      charge(connection, Math.floor(message.propertyBytes / bytesCountedAsMeasurement));
    if (message.fault) connection.breakOff('malformed', message.fault);
    else if (levelsOf(message.topic) > limits.maxTopicLevels)
      connection.breakOff('malformed', reason.topicInvalid);
    else publisher.accept(connection, message);
  }

  function charge({ device, heardMs }: Connection, units: number): void {
    if (!device) return;
    deviceLimits.charge(device.rates, { items: units }, heardMs);
  }

  function check({ v5 }: Connection, bytes: Buffer, frame: Frame, at: number): Checked {
    switch (frame.type) {
      case 4:
      case 5:
      case 6:
      case 7:
        return checkAck(bytes, frame);
      case 8:
      case 10:
        return checkFilters(bytes, frame, filterLimits, v5 !== null);
      case 12:
        // [MQTT-2.1.3-1]
        if (frame.flags !== 0) return refused(reason.malformed);
        return { fault: 0, bytes: bytes.subarray(at, frame.end) };
      case 14:
        return checkDisconnect(bytes, frame, v5?.expirySeconds ?? 0);
      // The frame scanner lets no other type pass.
      default:
        return refused(reason.protocolError);
    }
  }

  return { takeConnect, takePackets };
}

/** Counts without allocating an array for each message. */
function levelsOf(topic: string): number {
  let levels = 1;
  for (let at = topic.indexOf('/'); at >= 0; at = topic.indexOf('/', at + 1)) levels += 1;
  return levels;
}

type Intake = ReturnType<typeof createIntake>;
