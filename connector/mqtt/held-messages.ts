import type { Connection, Device } from './connection.ts';
import type { Tuning } from '../options.ts';
import type { DevicePorts } from '../ports.ts';
import type { Unacked, UnackedRoom } from './unacked.ts';

/** A message as it arrived, before anything is made of it. */
export type HeldMessage = { topic: string; qos: number; messageId: number; payload: Buffer };

/** Parses a message and gives it to ingest. `arrivedTs`: ms since the epoch. */
export type PassOn = (
  device: Device,
  message: HeldMessage,
  unacked: Unacked,
  arrivedTs: number,
) => void;

export type HoldingOptions = {
  holds: DevicePorts['holds'];
  tuning: Pick<Tuning, 'maxHeldBytes' | 'maxHeldTotalBytes'>;
  clock: () => number;
  now: () => number;
  /** A message's bytes are not under way while it waits, and are again. */
  room: Pick<UnackedRoom, 'setAside' | 'bringBack'>;
  /** The message goes on its way. */
  passOn: PassOn;
};

type Held = { device: Device; message: HeldMessage; unacked: Unacked; arrivedTs: number };

/** An account whose devices have to wait. */
type Waiting = {
  /** By device, each in the order of arrival. */
  devices: Map<number, Held[]>;
  bytes: number;
  /** Connections that are not read, as too much of the account waits. */
  unread: Set<Connection>;
  timer: NodeJS.Timeout | null;
};

export type HeldMessages = ReturnType<typeof createHeldMessages>;

/** So many messages go on at once, then it is asked again whether more may. */
const atOnce = 100;
const pauseMs = 10;
const longestPauseMs = 1_000;

/** For a message whose device will send it again. */
export const withdrawnError = (): Error =>
  Object.assign(new Error('the device will send it again'), { code: 'unavailable' });

/**
 * Messages of accounts that bring more than they may. Their connections are read on, so that a device
 * is answered its pings, also where the wait takes days: what it published meanwhile is neither parsed
 * nor acknowledged, so that it soon sends no more. Only when too much of the account waits its
 * connections are not read either. The order of a device's messages stays.
 */
export function createHeldMessages(options: HoldingOptions) {
  const { holds, tuning, clock, now, room, passOn } = options;
  const accounts = new Map<number, Waiting>();
  let totalBytes = 0;

  const hasRoom = ({ bytes }: Waiting) =>
    bytes < tuning.maxHeldBytes && totalBytes < tuning.maxHeldTotalBytes;

  function begin(accountId: number): Waiting | null {
    const waitMs = holds?.waitMs(accountId) ?? 0;
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
    const waitMs = holds?.waitMs(accountId) ?? 0;
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

  function forget(waiting: Waiting, { device, unacked }: Held): void {
    waiting.bytes -= unacked.bytes;
    totalBytes -= unacked.bytes;
    room.bringBack(device, unacked.bytes);
  }

  return {
    /** Takes the message where its account has to wait; false: it may go on. */
    take(device: Device, message: HeldMessage, unacked: Unacked): boolean {
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
      room.setAside(device, unacked.bytes);
      holds?.waits(device.identity, message.topic);
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
