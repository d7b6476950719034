import type { ServerResponse } from 'node:http';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { MemoryBudget } from '../../src/lib/memory-budget.ts';
import { Bucket, type Rate } from '../device/rates.ts';
import type { ConnectorPorts, Tuning } from '../ports.ts';
import { comeLater, type HttpDevices, tooMany } from './devices.ts';
import type { MonotonicClock } from '../../src/lib/clock-readings.ts';

type PollPresenceDeps = {
  ports: Pick<ConnectorPorts, 'presence'>;
  /** How long the next poll of a device that was answered may take to come, ms. */
  graceMs: number;
};

type Waiting = { identity: DeviceIdentity; polls: number; timer: NodeJS.Timeout | null };

/**
 * A device is connected while a poll of it waits, and a little longer after an answer: it reads that and asks
 * again. One whose connection ends before the answer has left.
 */
export function createPollPresence({ ports, graceMs }: PollPresenceDeps) {
  const devices = new Map<number, Waiting>();

  function leave(device: Waiting): void {
    if (device.timer) clearTimeout(device.timer);
    devices.delete(device.identity.deviceId);
    ports.presence(device.identity, 'disconnected');
  }

  return {
    began(identity: DeviceIdentity): void {
      const known = devices.get(identity.deviceId);
      if (!known) {
        devices.set(identity.deviceId, { identity, polls: 1, timer: null });
        ports.presence(identity, 'connected');
        return;
      }
      known.polls += 1;
      if (known.timer) clearTimeout(known.timer);
      known.timer = null;
    },

    /** One that began; `isAnswered`: and not left by its client. */
    ended({ deviceId }: DeviceIdentity, isAnswered: boolean): void {
      const device = devices.get(deviceId);
      if (!device) return;
      device.polls -= 1;
      if (device.polls > 0) return;
      if (!isAnswered) leave(device);
      else device.timer = setTimeout(() => leave(device), graceMs);
    },

    /** None comes again. */
    stop(): void {
      for (const device of devices.values()) if (device.timer) leave(device);
    },
  };
}

type PollRateDeps = {
  devices: Pick<HttpDevices, 'of' | 'takePoll'>;
  /** The quota `connections` of an account. */
  connectionsOf: (accountId: number) => number;
  now: MonotonicClock;
  /** A poll beyond a rate is refused so late: else whoever asks again at once keeps the process busy with refusals. */
  refusalMs: number;
};

/** Each of an account's connections polls so often on average; of few connections so many a second. */
const pollEverySeconds = 20;
const leastPerSecond = 10;
/** After a pause so much of it comes at once. */
const burstSeconds = 4;

type AccountPolls = { rate: Rate; bucket: Bucket };

/** How often devices and accounts may poll. Reading what is due costs as much as storing a message. */
export function createPollRate({ devices, connectionsOf, now, refusalMs }: PollRateDeps) {
  const accounts = new Map<number, AccountPolls>();
  const refusals = new Set<() => void>();
  let isStopping = false;

  function pollsOf(accountId: number): AccountPolls {
    const known = accounts.get(accountId);
    if (known) return known;
    const perSecond = Math.max(leastPerSecond, connectionsOf(accountId) / pollEverySeconds);
    const rate = { perSecond, burst: burstSeconds * perSecond };
    const turns = { rate, bucket: new Bucket(rate, now()) };
    accounts.set(accountId, turns);
    return turns;
  }

  /** 0 where both may go on; else the ms after which they may. */
  function take(identity: DeviceIdentity): number {
    const monotonicMs = now();
    const { rate, bucket } = pollsOf(identity.accountId);
    const waitMs = bucket.waitMs(rate, monotonicMs);
    if (waitMs > 0) return waitMs;
    const ownMs = devices.takePoll(devices.of(identity));
    if (ownMs === 0) bucket.take(1, rate, monotonicMs);
    return ownMs;
  }

  /** Until the refusal is due, its client has gone, or the service stops. */
  function untilDue(response: ServerResponse): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        response.off('close', end);
        refusals.delete(end);
        resolve();
      };
      const timer = setTimeout(end, refusalMs);
      response.once('close', end);
      refusals.add(end);
    });
  }

  return {
    /** Takes a turn. Rejects with 429, after a while, where there is none. */
    async take(identity: DeviceIdentity, response: ServerResponse): Promise<void> {
      const waitMs = take(identity);
      if (waitMs === 0) return;
      await untilDue(response);
      if (isStopping) throw comeLater('The service is stopping: try again.', 1);
      throw tooMany('The device or its account sends requests faster than allowed.', waitMs);
    },

    /** Forgets accounts that could ask at full rate again. */
    forgetIdle(): void {
      const monotonicMs = now();
      for (const [id, { rate, bucket }] of accounts)
        if (bucket.isFull(rate, monotonicMs)) accounts.delete(id);
    },

    countRefusals: () => refusals.size,

    /** All that are to be refused are, at once. */
    stop(): void {
      isStopping = true;
      for (const end of refusals) end();
    },
  };
}

/**
 * Ends the connection of a device that does not take its answer: as late as one over MQTT that does not acknowledge,
 * and sooner while others wait for the room. What it has not got is in its next answer.
 */
export function limitTaking(
  response: ServerResponse,
  budget: Pick<MemoryBudget, 'isWanted'>,
  {
    downlinkTimeoutMs,
    wantedDownlinkTimeoutMs,
  }: Pick<Tuning, 'downlinkTimeoutMs' | 'wantedDownlinkTimeoutMs'>,
): void {
  if (response.closed) return;
  const end = (): void => void response.destroy();
  const last = setTimeout(end, downlinkTimeoutMs);
  const looking = setInterval(() => budget.isWanted && end(), wantedDownlinkTimeoutMs);
  for (const timer of [last, looking]) timer.unref();
  response.once('close', () => {
    clearTimeout(last);
    clearInterval(looking);
  });
}
