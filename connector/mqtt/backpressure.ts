import type { Clock, MonotonicClock, WallMs } from '../../src/lib/clock-readings.ts';
import type { Receive } from '../device/receive.ts';
import type { DevicePorts, Tuning } from '../ports.ts';
import { type Unacked, type UnackedBudget, withdrawnError } from './acknowledge.ts';
import type { Connection, Device } from './connection.ts';

/** A message as it arrived, not parsed yet. */
export type ParkedMessage = { topic: string; qos: number; messageId: number; payload: Buffer };

type AccountBackpressureOptions = {
  throttle: DevicePorts['throttle'];
  tuning: Pick<Tuning, 'maxParkedBytes' | 'maxParkedTotalBytes'>;
  clock: Clock;
  now: MonotonicClock;
  /** While a message is parked, its bytes do not count as under way. */
  budget: Pick<UnackedBudget, 'setAside' | 'bringBack'>;
  receive: Receive;
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

/**
 * Parks messages of accounts that send more than they may. Their connections are still read, so that a device gets
 * answers to its pings even if the wait takes days. Parked messages are neither parsed nor acknowledged, so the device
 * soon stops sending. Only when too much of the account is parked are its connections not read either. The messages of
 * a device keep their order.
 */
export function createAccountBackpressure(options: AccountBackpressureOptions) {
  const { throttle, tuning, clock, now, budget, receive } = options;
  const accounts = new Map<number, Waiting>();
  let totalBytes = 0;

  const mayParkMore = ({ bytes }: Waiting) =>
    bytes < tuning.maxParkedBytes && totalBytes < tuning.maxParkedTotalBytes;

  /** Lets the account wait, if it has to. */
  function begin(accountId: number): boolean {
    const waitMs = throttle?.waitMs(accountId) ?? 0;
    if (waitMs === 0) return false;
    const waiting: Waiting = { devices: new Map(), bytes: 0, unread: new Set(), timer: null };
    accounts.set(accountId, waiting);
    wait(accountId, waiting, waitMs);
    return true;
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
      if (accounts.get(accountId) === waiting && !mayParkMore(waiting)) return;
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
    const { topic, payload } = held.message;
    receive(held.device, { topic, payload, arrivedTs: held.arrivedTs }, held.unacked);
  }

  function forget(waiting: Waiting, { device, unacked }: Parked): void {
    waiting.bytes -= unacked.bytes;
    totalBytes -= unacked.bytes;
    budget.bringBack(device, unacked.bytes);
  }

  return {
    /** Whether messages of the account have to wait now. */
    mustWait: ({ accountId }: Device['identity']): boolean =>
      accounts.has(accountId) || begin(accountId),

    /** Parks a message of an account that has to wait. */
    park(device: Device, message: ParkedMessage, unacked: Unacked): void {
      const { accountId, deviceId } = device.identity;
      const waiting = accounts.get(accountId);
      if (!waiting) throw new Error('The account does not have to wait.');
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
    },

    /** Whether the account's parked messages leave room to read a connection. If not, it is resumed once they do. */
    canReadOrWait(connection: Connection, { identity }: Device): boolean {
      const waiting = accounts.get(identity.accountId);
      if (!waiting || mayParkMore(waiting)) return true;
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
