import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { network } from '../../src/lib/address.ts';
import type { ConnectorPorts } from '../ports.ts';
import type { MonotonicClock, MonotonicMs } from '../../src/lib/clock-readings.ts';

/** Called for every message, so it has to be quick. */
export type RateObserver = {
  /** A message had to wait for its device's rates. */
  waited(): void;
  /** A device was let go on beyond its rates, by this many messages or measurements. */
  beyond(amount: number): void;
};

type RateStoreOptions = {
  ports: Pick<ConnectorPorts, 'othersWait' | 'measurementsPerSecond' | 'mayCatchUp'>;
  limits: { messagesPerSecond: number; messagesBurst: number; measurementsPerSecond: number };
  now: MonotonicClock;
  /** How many messages or measurements one device may send beyond its rates in a day. Absent: `beyondPerDay`. */
  beyondPerDay?: number;
  observe?: RateObserver;
};

/** How often a device that waits is looked at again, to see whether it may catch up now. */
export const lookMs = 100;

/** An option of each transport. Absent: no other transport of this process serves the same devices. */
export type SharedRates = { rateStore?: RateStore | undefined };

/** The rates of devices. All transports of a process share one, so that a device has one rate whichever it uses. */
export type RateStore = {
  messageRate: Rate;
  /** Whether devices may ever go beyond their rates. */
  canCatchUp: boolean;
  /** The rates of a device. Whoever calls this has to call `leave` later. */
  enter(identity: DeviceIdentity): DeviceRates;
  leave(rates: DeviceRates): void;
  takeMessages(rates: DeviceRates, count: number, monotonicMs: MonotonicMs): void;
  /** Charges measurements, or what counts as such, to the device and its account. */
  takeItems(rates: DeviceRates, count: number, monotonicMs: MonotonicMs): void;
  takeOthers(rates: DeviceRates, count: number, monotonicMs: MonotonicMs): void;
  /** Milliseconds until the device's rates let its next message be read; 0: now. */
  waitMs(rates: DeviceRates): number;
  /**
   * Lets a device continue although its rates say wait, by forgiving what it owes. What it owed counts against its
   * daily amount beyond its rates. False: others need the machine now, or the daily amount is used up.
   */
  letGoOn(rates: DeviceRates): boolean;
  othersWaitMs(rates: DeviceRates): number;
  /** Whether the account is beyond its rate while others wait. If nobody waits, what it owes is forgiven. */
  isBeyond(account: AccountRates): boolean;
  /** Counts a message that has to wait for its device's rates. */
  countWait(): void;
  /** Whether the device could send at full rate again. */
  isFull(rates: DeviceRates): boolean;
  /** How many devices are remembered. */
  count(): number;
};

/**
 * Some months of one value a minute, or a week of five a second. A device that never stops sending is held to little
 * more than its rate even when nobody else sends, because its measurements have to be stored somewhere.
 */
const beyondPerDay = 5_000_000;
const daySeconds = 86_400;

export function createRateStore(options: RateStoreOptions): RateStore {
  const { ports, limits, now, observe } = options;
  const messageRate: Rate = { perSecond: limits.messagesPerSecond, burst: limits.messagesBurst };
  const { measurementsPerSecond: perSecond } = limits;
  const itemRate: Rate = { perSecond, burst: perSecond };
  const mostBeyond = options.beyondPerDay ?? beyondPerDay;
  const beyondRate: Rate = { perSecond: mostBeyond / daySeconds, burst: mostBeyond };
  const remembered = createRememberedRates({ newAccount, newDevice, isForgettable });

  function newAccount(id: number): AccountRates {
    const ofAccount = ports.measurementsPerSecond(id);
    const rate = { perSecond: ofAccount, burst: ofAccount };
    return { id, rate, measurements: new Bucket(rate, now()), devices: 0 };
  }

  function newDevice(deviceId: number, account: AccountRates): DeviceRates {
    const monotonicMs = now();
    return {
      deviceId,
      account,
      messages: new Bucket(messageRate, monotonicMs),
      measurements: new Bucket(itemRate, monotonicMs),
      others: new Bucket(messageRate, monotonicMs),
      beyond: null,
      users: 0,
    };
  }

  /**
   * What a device sent beyond its rates counts for a day, even if it reconnects in between. The last device of an
   * account is remembered as long as the account owes anything, because the account's debt is kept with it.
   */
  function isForgettable(rates: DeviceRates): boolean {
    const { account, beyond } = rates;
    const isLast = account.devices === 1;
    if (isLast && !account.measurements.isFull(account.rate, now())) return false;
    return isFull(rates) && (beyond?.isFull(beyondRate, now()) ?? true);
  }

  function isFull({ messages, measurements, others }: DeviceRates): boolean {
    const monotonicMs = now();
    return (
      messages.isFull(messageRate, monotonicMs) &&
      measurements.isFull(itemRate, monotonicMs) &&
      others.isFull(messageRate, monotonicMs)
    );
  }

  function waitMs({ messages, measurements }: DeviceRates): number {
    if (messages.tokens > 0 && measurements.tokens > 0) return 0;
    const monotonicMs = now();
    return Math.max(
      messages.waitMs(messageRate, monotonicMs),
      measurements.waitMs(itemRate, monotonicMs),
    );
  }

  function letGoOn(rates: DeviceRates): boolean {
    if (!ports.mayCatchUp?.(rates.account.id)) return false;
    const monotonicMs = now();
    rates.beyond ??= new Bucket(beyondRate, monotonicMs);
    if (rates.beyond.waitMs(beyondRate, monotonicMs) > 0) return false;
    const owed = -Math.min(0, rates.messages.tokens, rates.measurements.tokens);
    rates.beyond.take(owed, beyondRate, monotonicMs);
    rates.messages.forgive();
    rates.measurements.forgive();
    if (owed > 0) observe?.beyond(owed);
    return true;
  }

  function isBeyond(account: AccountRates): boolean {
    if (account.measurements.tokens > 0) return false;
    const ofAccount = ports.measurementsPerSecond(account.id);
    account.rate = { perSecond: ofAccount, burst: ofAccount };
    const isWithin = account.measurements.waitMs(account.rate, now()) === 0;
    if (isWithin || ports.othersWait(account.id)) return !isWithin;
    account.measurements.forgive();
    return false;
  }

  return {
    messageRate,
    canCatchUp: ports.mayCatchUp !== undefined,

    enter: remembered.enter,
    leave: remembered.leave,

    takeMessages: (rates, count, monotonicMs) =>
      rates.messages.take(count, messageRate, monotonicMs),

    takeItems({ measurements, account }, count, monotonicMs) {
      measurements.take(count, itemRate, monotonicMs);
      account.measurements.take(count, account.rate, monotonicMs);
    },

    takeOthers: (rates, count, monotonicMs) => rates.others.take(count, messageRate, monotonicMs),

    waitMs,
    letGoOn,
    othersWaitMs: ({ others }) => (others.tokens > 0 ? 0 : others.waitMs(messageRate, now())),
    isBeyond,
    countWait: () => observe?.waited(),
    isFull,
    count: remembered.count,
  };
}

/** What an account's devices send together, over all transports. */
type AccountRates = {
  readonly id: number;
  rate: Rate;
  readonly measurements: Bucket;
  devices: number;
};

/** What a device has used of its rates, over all transports. */
export type DeviceRates = {
  readonly deviceId: number;
  readonly account: AccountRates;
  readonly messages: Bucket;
  readonly measurements: Bucket;
  /** Whatever is not a message: other packets, and polls over HTTP. */
  readonly others: Bucket;
  /** What is left of its daily amount beyond its rates; null: all of it. */
  beyond: Bucket | null;
  /** How many transports remember it. */
  users: number;
};

type RememberedRates = {
  /** The rates of a device. Whoever calls this has to call `leave` later. */
  enter(identity: DeviceIdentity): DeviceRates;
  leave(rates: DeviceRates): void;
  /** How many devices are remembered. */
  count(): number;
};

type RememberedRatesDeps = {
  newAccount: (accountId: number) => AccountRates;
  newDevice: (deviceId: number, account: AccountRates) => DeviceRates;
  /** Whether the device could be replaced by a new one without a difference. */
  isForgettable: (rates: DeviceRates) => boolean;
};

/** When this many devices are remembered that no transport uses, those that may be forgotten are removed. */
const forgetAt = 1_000;

/** The rates of devices. A device is remembered while a transport uses it, and as long as it differs from a new one. */
function createRememberedRates(deps: RememberedRatesDeps): RememberedRates {
  const devices = new Map<number, DeviceRates>();
  const accounts = new Map<number, AccountRates>();
  /** Devices that no transport uses. */
  const left = new Set<DeviceRates>();
  let lookAt = forgetAt;

  function accountOf(id: number): AccountRates {
    const known = accounts.get(id);
    if (known) return known;
    const account = deps.newAccount(id);
    accounts.set(id, account);
    return account;
  }

  function newDevice({ deviceId, accountId }: DeviceIdentity): DeviceRates {
    const account = accountOf(accountId);
    account.devices += 1;
    const rates = deps.newDevice(deviceId, account);
    devices.set(deviceId, rates);
    return rates;
  }

  function forget(rates: DeviceRates): void {
    const { deviceId, account } = rates;
    left.delete(rates);
    devices.delete(deviceId);
    account.devices -= 1;
    if (account.devices === 0) accounts.delete(account.id);
  }

  function forgetLeft(): void {
    for (const rates of left) if (deps.isForgettable(rates)) forget(rates);
    // If few could be forgotten, the next sweep is far off.
    lookAt = Math.max(forgetAt, 2 * left.size);
  }

  return {
    enter(identity) {
      const rates = devices.get(identity.deviceId) ?? newDevice(identity);
      if (rates.users === 0) left.delete(rates);
      rates.users += 1;
      return rates;
    },

    leave(rates) {
      rates.users -= 1;
      if (rates.users > 0) return;
      if (deps.isForgettable(rates)) return forget(rates);
      left.add(rates);
      if (left.size >= lookAt) forgetLeft();
    },

    count: () => devices.size,
  };
}

/** How much passes a second, and how much at once after a pause. */
export type Rate = { perSecond: number; burst: number };

/** A token bucket that may go into debt: a charge is never refused, but the next message waits until it is paid off. */
export class Bucket {
  /** A lower bound of what may be taken, without reading the clock: it only grows until something is taken. */
  tokens: number;
  #atMs: number;

  constructor(rate: Rate, monotonicMs: MonotonicMs) {
    this.tokens = rate.burst;
    this.#atMs = monotonicMs;
  }

  take(amount: number, rate: Rate, monotonicMs: MonotonicMs): void {
    this.#refill(rate, monotonicMs);
    this.tokens -= amount;
  }

  /** Milliseconds until something may be taken; 0: now. */
  waitMs(rate: Rate, monotonicMs: MonotonicMs): number {
    this.#refill(rate, monotonicMs);
    return this.tokens > 0 ? 0 : Math.ceil(((1 - this.tokens) * 1_000) / rate.perSecond);
  }

  /** Cancels the debt. What is left of the tokens stays. */
  forgive(): void {
    this.tokens = Math.max(0, this.tokens);
  }

  isFull(rate: Rate, monotonicMs: MonotonicMs): boolean {
    this.#refill(rate, monotonicMs);
    return this.tokens >= rate.burst;
  }

  #refill(rate: Rate, monotonicMs: MonotonicMs): void {
    const earned = ((monotonicMs - this.#atMs) * rate.perSecond) / 1_000;
    this.tokens = Math.min(rate.burst, this.tokens + earned);
    this.#atMs = monotonicMs;
  }
}

/** How many addresses are remembered before those that owe nothing are removed. */
const maxIdle = 10_000;

/** Counts refused logins per address (IPv6: per /64). */
export type Refusals = {
  /** Whether no address has a refused login. */
  isEmpty(): boolean;
  /** How many milliseconds logins from this address have to wait; 0: none. */
  waitMs(address: string): number;
  refused(address: string): void;
};

export function createRefusals(perSecond: number, now: MonotonicClock): Refusals {
  const rate: Rate = { perSecond, burst: perSecond };
  const buckets = new Map<string, Bucket>();
  let sweepAt = maxIdle;

  function forgetIdle(monotonicMs: MonotonicMs): void {
    for (const [key, bucket] of buckets) if (bucket.isFull(rate, monotonicMs)) buckets.delete(key);
    // If few were idle, the next sweep is far off; otherwise each new address would cause one.
    sweepAt = Math.max(maxIdle, 2 * buckets.size);
  }

  return {
    isEmpty: () => buckets.size === 0,
    waitMs: (address) => buckets.get(network(address))?.waitMs(rate, now()) ?? 0,
    refused(address) {
      const key = network(address);
      const monotonicMs = now();
      if (buckets.size >= sweepAt) forgetIdle(monotonicMs);
      const bucket = buckets.get(key) ?? new Bucket(rate, monotonicMs);
      bucket.take(1, rate, monotonicMs);
      buckets.set(key, bucket);
    },
  };
}
