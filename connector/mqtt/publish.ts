import type { Client, PublishPacket } from 'aedes';
import { findUpTopic, isBelow } from '../../src/contract/uplink.ts';
import type { RateStore } from '../device/rates.ts';
import { createUnknownMemberThrottle, parseUplink } from '../device/uplink.ts';
import type { ConnectorLimits, ConnectorPorts, DevicePorts, Observer, Tuning } from '../ports.ts';
import { type Connection, type Device, findConnection } from './connection.ts';
import { readPublish } from './frames.ts';
import { type Acknowledger, CountedUnacked, Unacked, type UnackedBudget } from './inflight.ts';
import { reason } from './v5.ts';
import type { Clock, MonotonicClock, WallMs } from '../../src/lib/clock-readings.ts';

type PassOnDeps = {
  ports: Pick<ConnectorPorts, 'ingest'>;
  rateStore: RateStore;
  limits: Pick<ConnectorLimits, 'rejectionsPerMessage'>;
  observe: Pick<Observer, 'message'>;
  now: MonotonicClock;
};

export function createPassOn({ ports, rateStore, limits, observe, now }: PassOnDeps): PassOn {
  const { rejectionsPerMessage: max } = limits;
  const mayTellNow = createUnknownMemberThrottle(now);
  return function passOn(device, { topic, payload }, unacked, arrivedTs) {
    const mayTell = () => mayTellNow(device.identity.uuid);
    const uplink = parseUplink(topic, device.upPrefix, payload, arrivedTs, max, mayTell);
    observe.message(uplink.content.kind);
    unacked.uplink = uplink;
    if (unacked.isWithdrawn) return unacked.failed(withdrawnError());
    // What is wrong costs as much as what is right, and an event as much as a measurement.
    rateStore.takeItems(device.rates, uplink.items, unacked.sinceMs);
    ports.ingest(device.identity, uplink, unacked);
  };
}

type PublishDeps = {
  clock: Clock;
  budget: Pick<UnackedBudget, 'reserve' | 'release'>;
  acknowledger: Acknowledger;
  backpressure: Pick<AccountBackpressure, 'take'>;
  passOn: PassOn;
  tuning: Tuning;
  now: MonotonicClock;
  /** A device published where it may not. */
  onForeignTopic: (device: Device, message: ParkedMessage) => void;
};

/** Parsed, a payload takes about so many times its bytes; it is kept besides. */
const parsedFactor = 4;

export type Publisher = ReturnType<typeof createPublisher>;

/** Takes what devices publish. */
export function createPublisher(deps: PublishDeps) {
  const { clock, budget, acknowledger, backpressure, passOn, tuning, now, onForeignTopic } = deps;

  /** Takes the will of a connection that has ended, which is all that aedes publishes: nobody will send it again. */
  function acceptWill(
    client: Client | null,
    packet: PublishPacket,
    done: (error?: Error | null) => void,
  ): void {
    const connection = findConnection(client);
    const device = connection?.device;
    // A will left behind by another process has no client. None is ever kept.
    if (!connection || !device || packet !== connection.will)
      return done(new Error('nobody publishes this'));
    if (connection.ending === 'shutdown') return done(new Error('the service stops'));
    const { topic } = packet;
    acknowledger.linger(connection);
    const payload = packet.payload as Buffer;
    track(device, connection, { topic, qos: 0, messageId: 0, payload }, now(), false);
    done();
  }

  /** Takes the plain messages that a chunk begins with; gives the rest of it. */
  function acceptLeading(connection: Connection, chunk: Buffer): Buffer | null {
    const { device } = connection;
    if (!device || connection.ending !== null) return chunk;
    let at = 0;
    while (at < chunk.length) {
      const frame = readPublish(chunk, at, device.upPrefix, connection.v5 !== null);
      if (!frame || findUpTopic(frame.topic, device.upPrefix) === null) break;
      track(device, connection, frame, connection.heardMs, false);
      at = frame.end;
    }
    if (at === 0) return chunk;
    return at < chunk.length ? chunk.subarray(at) : null;
  }

  /** Takes a message that was checked. */
  function accept(connection: Connection, { topic, qos, messageId, payload }: ParkedMessage): void {
    const { device } = connection;
    if (!device || connection.ending !== null) return;
    const message = { topic, qos, messageId, payload };
    if (!isBelow(topic, device.upPrefix)) {
      onForeignTopic(device, message);
      return connection.breakOff('foreign-topic');
    }
    // Sent again before its PUBREL: it is stored, or about to be. [MQTT-4.3.3-2]
    const isRepeated = qos === 2 && !reserve(connection, messageId);
    if (connection.isBroken) return;
    track(device, connection, message, connection.heardMs, isRepeated);
  }

  /** False where the message is known already. Too many of them end the connection. */
  function reserve(connection: Connection, messageId: number): boolean {
    const unreleased = (connection.unreleased ??= new Set());
    if (unreleased.has(messageId)) return false;
    unreleased.add(messageId);
    // The receive maximum counts until PUBCOMP, and a client of MQTT 5 was told of it. Section 3.3.4.
    const most = connection.v5 ? tuning.maxUnackedMessages : tuning.maxUnreleased;
    if (unreleased.size > most) connection.breakOff('malformed', reason.receiveMaximumExceeded);
    return true;
  }

  /**
   * Remembers whom to acknowledge, and passes the message on: to ingest, or to those that wait because of their account.
   * `sinceMs`: when it was read. `isRepeated`: it is stored, or about to be.
   */
  function track(
    device: Device,
    connection: Connection,
    message: ParkedMessage,
    sinceMs: number,
    isRepeated: boolean,
  ): void {
    const { qos, messageId, payload } = message;
    const bytes = payload.length * parsedFactor + tuning.messageOverheadBytes;
    const Kind = connection.v5 && qos > 0 ? CountedUnacked : Unacked;
    const unacked = new Kind(acknowledger, budget, connection, {
      qos,
      messageId,
      bytes,
      sinceMs,
    });
    // An empty array that is pushed to makes room for seventeen: nearly all of these hold one.
    if (connection.unacked.length === 0) connection.unacked = [unacked];
    else connection.unacked.push(unacked);
    if (isRepeated) unacked.stored();
    else if (!backpressure.take(device, message, unacked))
      passOn(device, message, unacked, clock());
  }

  return { acceptWill, acceptLeading, accept };
}

/** A message as it arrived, before anything is made of it. */
export type ParkedMessage = { topic: string; qos: number; messageId: number; payload: Buffer };

/** Parses a message and gives it to ingest. `arrivedTs`: ms since the epoch. */
type PassOn = (device: Device, message: ParkedMessage, unacked: Unacked, arrivedTs: WallMs) => void;

type AccountBackpressureOptions = {
  throttle: DevicePorts['throttle'];
  tuning: Pick<Tuning, 'maxParkedBytes' | 'maxParkedTotalBytes'>;
  clock: Clock;
  now: MonotonicClock;
  /** A message's bytes are not under way while it waits, and are again. */
  budget: Pick<UnackedBudget, 'setAside' | 'bringBack'>;
  /** The message goes on its way. */
  passOn: PassOn;
};

type Parked = { device: Device; message: ParkedMessage; unacked: Unacked; arrivedTs: WallMs };

/** An account whose devices have to wait. */
type Waiting = {
  /** By device, each in the order of arrival. */
  devices: Map<number, Parked[]>;
  bytes: number;
  /** Connections that are not read, as too much of the account waits. */
  unread: Set<Connection>;
  timer: NodeJS.Timeout | null;
};

export type AccountBackpressure = ReturnType<typeof createAccountBackpressure>;

/** So many messages go on at once, then it is asked again whether more may. */
const atOnce = 100;
const pauseMs = 10;
const longestPauseMs = 1_000;

/** For a message whose device will send it again. */
const withdrawnError = (): Error =>
  Object.assign(new Error('the device will send it again'), { code: 'unavailable' });

/**
 * Messages of accounts that bring more than they may. Their connections are read on, so that a device
 * is answered its pings, also where the wait takes days: what it published meanwhile is neither parsed
 * nor acknowledged, so that it soon sends no more. Only when too much of the account waits its
 * connections are not read either. The order of a device's messages stays.
 */
export function createAccountBackpressure(options: AccountBackpressureOptions) {
  const { throttle, tuning, clock, now, budget, passOn } = options;
  const accounts = new Map<number, Waiting>();
  let totalBytes = 0;

  const hasRoom = ({ bytes }: Waiting) =>
    bytes < tuning.maxParkedBytes && totalBytes < tuning.maxParkedTotalBytes;

  function begin(accountId: number): Waiting | null {
    const waitMs = throttle?.waitMs(accountId) ?? 0;
    if (waitMs === 0) return null;
    const waiting: Waiting = { devices: new Map(), bytes: 0, unread: new Set(), timer: null };
    accounts.set(accountId, waiting);
    wait(accountId, waiting, waitMs);
    return waiting;
  }

  function wait(accountId: number, waiting: Waiting, ms: number): void {
    const go = () => goOn(accountId, waiting);
    waiting.timer = setTimeout(go, Math.min(ms, longestPauseMs)).unref();
  }

  function goOn(accountId: number, waiting: Waiting): void {
    const waitMs = throttle?.waitMs(accountId) ?? 0;
    for (let n = 0; waitMs === 0 && n < atOnce && waiting.devices.size > 0; n += 1)
      releaseOne(waiting);
    if (waitMs > 0 || waiting.devices.size > 0) wait(accountId, waiting, waitMs || pauseMs);
    else accounts.delete(accountId);
    readAgain(accountId, waiting);
  }

  /** All connections where nothing waits any more, otherwise as many as there is room for. */
  function readAgain(accountId: number, waiting: Waiting): void {
    for (const connection of waiting.unread) {
      if (accounts.get(accountId) === waiting && !hasRoom(waiting)) return;
      waiting.unread.delete(connection);
      connection.resume();
    }
  }

  /** The first message of the device that has waited longest for its turn. */
  function releaseOne(waiting: Waiting): void {
    const [first] = waiting.devices;
    if (!first) return;
    const [deviceId, queue] = first;
    const held = queue.shift();
    waiting.devices.delete(deviceId);
    if (queue.length > 0) waiting.devices.set(deviceId, queue);
    if (!held) return;
    forget(waiting, held);
    held.unacked.sinceMs = now();
    passOn(held.device, held.message, held.unacked, held.arrivedTs);
  }

  function forget(waiting: Waiting, { device, unacked }: Parked): void {
    waiting.bytes -= unacked.bytes;
    totalBytes -= unacked.bytes;
    budget.bringBack(device, unacked.bytes);
  }

  return {
    /** Takes the message where its account has to wait; false: it may go on. */
    take(device: Device, message: ParkedMessage, unacked: Unacked): boolean {
      const { accountId, deviceId } = device.identity;
      const waiting = accounts.get(accountId) ?? begin(accountId);
      if (!waiting) return false;
      const queue = waiting.devices.get(deviceId) ?? [];
      waiting.devices.set(deviceId, queue);
      // A slice would keep the whole buffer that it is a part of.
      const payload = Buffer.from(message.payload);
      queue.push({ device, message: { ...message, payload }, unacked, arrivedTs: clock() });
      // It is not the store that is late.
      unacked.sinceMs = Infinity;
      waiting.bytes += unacked.bytes;
      totalBytes += unacked.bytes;
      budget.setAside(device, unacked.bytes);
      throttle?.waits(device.identity, message.topic);
      return true;
    },

    /** Whether a connection may be read as far as its account is concerned; resumed when it may again. */
    canReadOrWait(connection: Connection, { identity }: Device): boolean {
      const waiting = accounts.get(identity.accountId);
      if (!waiting || hasRoom(waiting)) return true;
      waiting.unread.add(connection);
      return false;
    },

    /** Those of a device's messages that need not be stored any more fail now. */
    withdraw({ accountId, deviceId }: Device['identity']): void {
      const waiting = accounts.get(accountId);
      const queue = waiting?.devices.get(deviceId);
      if (!waiting || !queue) return;
      const left = queue.filter(({ unacked }) => !unacked.isWithdrawn);
      if (left.length > 0) waiting.devices.set(deviceId, left);
      else waiting.devices.delete(deviceId);
      for (const held of queue) {
        if (!held.unacked.isWithdrawn) continue;
        forget(waiting, held);
        held.unacked.failed(withdrawnError());
      }
    },

    forgetConnection(connection: Connection): void {
      const { device } = connection;
      if (device) accounts.get(device.identity.accountId)?.unread.delete(connection);
    },

    stop(): void {
      for (const { timer } of accounts.values()) if (timer) clearTimeout(timer);
    },
  };
}
