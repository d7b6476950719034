import type { ServerResponse } from 'node:http';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { MemoryBudget } from '../../src/lib/fair-budget.ts';
import { type Rate, TokenBucket } from '../../src/lib/token-bucket.ts';
import type { ConnectorPorts, Tuning } from '../ports.ts';
import { comeLater, type HttpDevices, tooMany } from './devices.ts';
import type { MonotonicClock } from '../../src/lib/clock-readings.ts';

type PollPresenceDeps = {
  ports: Pick<ConnectorPorts, 'presence'>;
  /** How long the next poll of a device that was answered may take to arrive, ms. */
  graceMs: number;
};

type Waiting = { identity: DeviceIdentity; polls: number; timer: NodeJS.Timeout | null };

/**
 * A device counts as connected while a poll of it waits, and a little longer after an answer, in which it reads the
 * answer and polls again. If its connection ends before the answer, the device has left.
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

    /** A poll that began has ended. `isAnswered`: its client did not leave before the answer. */
    ended({ deviceId }: DeviceIdentity, isAnswered: boolean): void {
      const device = devices.get(deviceId);
      if (!device) return;
      device.polls -= 1;
      if (device.polls > 0) return;
      if (!isAnswered) leave(device);
      else device.timer = setTimeout(() => leave(device), graceMs);
    },

    /** No polls will follow. */
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
  /**
   * How long the refusal of a poll beyond its rate is delayed, ms. Otherwise a client that asks again at once would
   * keep the process busy with refusals.
   */
  refusalMs: number;
};

/** On average each of an account's connections may poll this often, and the account at least this often a second. */
const pollEverySeconds = 20;
const leastPerSecond = 10;
/** After a pause, the polls of this many seconds may come at once. */
const burstSeconds = 4;

type AccountPolls = { rate: Rate; bucket: TokenBucket };

/** Limits how often devices and accounts may poll. Reading what is due costs as much as storing a message. */
export function createPollRate({ devices, connectionsOf, now, refusalMs }: PollRateDeps) {
  const accounts = new Map<number, AccountPolls>();
  const refusals = new Set<() => void>();
  let isStopping = false;

  function pollsOf(accountId: number): AccountPolls {
    const known = accounts.get(accountId);
    if (known) return known;
    const perSecond = Math.max(leastPerSecond, connectionsOf(accountId) / pollEverySeconds);
    const rate = { perSecond, burst: burstSeconds * perSecond };
    const account = { rate, bucket: new TokenBucket(rate, now()) };
    accounts.set(accountId, account);
    return account;
  }

  /** 0 if device and account may poll now; otherwise after how many ms they may. */
  function take(identity: DeviceIdentity): number {
    const monotonicMs = now();
    const { rate, bucket } = pollsOf(identity.accountId);
    const waitMs = bucket.waitMs(rate, monotonicMs);
    if (waitMs > 0) return waitMs;
    const ownMs = devices.takePoll(devices.of(identity));
    if (ownMs === 0) bucket.take(1, rate, monotonicMs);
    return ownMs;
  }

  /** Resolves when the refusal is due, its client has gone, or the service stops. */
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
    /** Charges a poll. Beyond the rate, rejects with 429 after `refusalMs`. */
    async take(identity: DeviceIdentity, response: ServerResponse): Promise<void> {
      const waitMs = take(identity);
      if (waitMs === 0) return;
      await untilDue(response);
      if (isStopping) throw comeLater('The service is stopping: try again.', 1);
      throw tooMany('The device or its account sends requests faster than allowed.', waitMs);
    },

    /** Forgets accounts that could poll at full rate again. */
    forgetIdle(): void {
      const monotonicMs = now();
      for (const [id, { rate, bucket }] of accounts)
        if (bucket.isFull(rate, monotonicMs)) accounts.delete(id);
    },

    countRefusals: () => refusals.size,

    /** Sends all delayed refusals now. */
    stop(): void {
      isStopping = true;
      for (const end of refusals) end();
    },
  };
}

/**
 * Ends the connection of a device that does not take its answer: as late as one over MQTT that does not acknowledge,
 * and sooner while others wait for the room. The device's next answer repeats what it missed.
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
