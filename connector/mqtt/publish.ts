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
    // Bad items cost as much as good ones, and an event as much as a measurement.
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
  /** A device published outside its own topics. */
  onForeignTopic: (device: Device, message: ParkedMessage) => void;
};

/** A parsed payload takes about this many times its bytes. The payload itself is kept too. */
const parsedFactor = 4;

export type Publisher = ReturnType<typeof createPublisher>;

/** Takes what devices publish. */
export function createPublisher(deps: PublishDeps) {
  const { clock, budget, acknowledger, backpressure, passOn, tuning, now, onForeignTopic } = deps;

  /** Takes the will of a connection that has ended. aedes publishes nothing else. Nobody will send the will again. */
  function acceptWill(
    client: Client | null,
    packet: PublishPacket,
    done: (error?: Error | null) => void,
  ): void {
    const connection = findConnection(client);
    const device = connection?.device;
    // A will that another process left behind has no client. We never keep any.
    if (!connection || !device || packet !== connection.will)
      return done(new Error('nobody publishes this'));
    if (connection.ending === 'shutdown') return done(new Error('the service stops'));
    const { topic } = packet;
    acknowledger.linger(connection);
    const payload = packet.payload as Buffer;
    track(device, connection, { topic, qos: 0, messageId: 0, payload }, now(), false);
    done();
  }

  /** Takes the plain messages at the start of a chunk. Returns the rest of the chunk. */
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
    // It was sent again before its PUBREL, so it is stored or about to be. [MQTT-4.3.3-2]
    const isRepeated = qos === 2 && !reserve(connection, messageId);
    if (connection.isBroken) return;
    track(device, connection, message, connection.heardMs, isRepeated);
  }

  /** False if the message is known already. Too many identifiers without PUBREL end the connection. */
  function reserve(connection: Connection, messageId: number): boolean {
    const unreleased = (connection.unreleased ??= new Set());
    if (unreleased.has(messageId)) return false;
    unreleased.add(messageId);
    // The receive maximum counts until PUBCOMP, and a client of MQTT 5 knows it from the CONNACK. Section 3.3.4.
    const most = connection.v5 ? tuning.maxUnackedMessages : tuning.maxUnreleased;
    if (unreleased.size > most) connection.breakOff('malformed', reason.receiveMaximumExceeded);
    return true;
  }

  /**
   * Notes which message to acknowledge, and passes it to ingest or, if the account has to wait, parks it. `sinceMs`:
   * when it was read. `isRepeated`: it is stored already, or about to be.
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
    // Pushing to an empty array reserves seventeen slots; nearly all of these arrays hold one message.
    if (connection.unacked.length === 0) connection.unacked = [unacked];
    else connection.unacked.push(unacked);
    if (isRepeated) unacked.stored();
    else if (!backpressure.take(device, message, unacked))
      passOn(device, message, unacked, clock());
  }

  return { acceptWill, acceptLeading, accept };
}

/** A message as it arrived, not parsed yet. */
export type ParkedMessage = { topic: string; qos: number; messageId: number; payload: Buffer };

/** Parses a message and gives it to ingest. `arrivedTs`: ms since the epoch. */
type PassOn = (device: Device, message: ParkedMessage, unacked: Unacked, arrivedTs: WallMs) => void;

type AccountBackpressureOptions = {
  throttle: DevicePorts['throttle'];
  tuning: Pick<Tuning, 'maxParkedBytes' | 'maxParkedTotalBytes'>;
  clock: Clock;
  now: MonotonicClock;
  /** While a message is parked, its bytes do not count as under way. */
  budget: Pick<UnackedBudget, 'setAside' | 'bringBack'>;
  /** Sends the message on its way. */
  passOn: PassOn;
};

type Parked = { device: Device; message: ParkedMessage; unacked: Unacked; arrivedTs: WallMs };

/** An account whose devices have to wait. */
type Waiting = {
  /** By device, each in order of arrival. */
  devices: Map<number, Parked[]>;
  bytes: number;
  /** Connections that are not read because too much of the account is parked. */
  unread: Set<Connection>;
  timer: NodeJS.Timeout | null;
};

export type AccountBackpressure = ReturnType<typeof createAccountBackpressure>;

/** This many messages go on at once; then `throttle` is asked again. */
const atOnce = 100;
const pauseMs = 10;
const longestPauseMs = 1_000;

/** Fails a message that its device will send again. */
const withdrawnError = (): Error =>
  Object.assign(new Error('the device will send it again'), { code: 'unavailable' });

/**
 * Parks messages of accounts that send more than they may. Their connections are still read, so that a device gets
 * answers to its pings even if the wait takes days. Parked messages are neither parsed nor acknowledged, so the device
 * soon stops sending. Only when too much of the account is parked are its connections not read either. The messages of
 * a device keep their order.
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

  /** Resumes all connections if nothing waits any more, otherwise as many as there is room for. */
  function readAgain(accountId: number, waiting: Waiting): void {
    for (const connection of waiting.unread) {
      if (accounts.get(accountId) === waiting && !hasRoom(waiting)) return;
      waiting.unread.delete(connection);
      connection.resume();
    }
  }

  /** Passes on the first message of the device that has waited longest for its turn. */
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
    /** Parks the message if its account has to wait; false: it may go on. */
    take(device: Device, message: ParkedMessage, unacked: Unacked): boolean {
      const { accountId, deviceId } = device.identity;
      const waiting = accounts.get(accountId) ?? begin(accountId);
      if (!waiting) return false;
      const queue = waiting.devices.get(deviceId) ?? [];
      waiting.devices.set(deviceId, queue);
      // A slice would keep the whole buffer that it is part of.
      const payload = Buffer.from(message.payload);
      queue.push({ device, message: { ...message, payload }, unacked, arrivedTs: clock() });
      // The wait is not the store's fault, so it does not count towards its timeout.
      unacked.sinceMs = Infinity;
      waiting.bytes += unacked.bytes;
      totalBytes += unacked.bytes;
      budget.setAside(device, unacked.bytes);
      throttle?.waits(device.identity, message.topic);
      return true;
    },

    /** Whether the account's parked messages leave room to read a connection. If not, it is resumed once they do. */
    canReadOrWait(connection: Connection, { identity }: Device): boolean {
      const waiting = accounts.get(identity.accountId);
      if (!waiting || hasRoom(waiting)) return true;
      waiting.unread.add(connection);
      return false;
    },

    /** Fails those of the device's messages that need not be stored any more. */
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
