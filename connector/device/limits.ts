import type { AccountThrottle, DeviceIdentity } from '../../src/contract/uplink.ts';
import { type Rate, TokenBucket } from '../../src/lib/token-bucket.ts';
import type { ConnectorPorts } from '../ports.ts';
import type { MonotonicClock, MonotonicMs } from '../../src/lib/clock-readings.ts';

/** Called for every message that waits, so it has to be quick. */
export type RateObserver = {
  /** A message had to wait for its device's rates. */
  waited(): void;
  /** A device was let go on beyond its rates, by this many messages or measurements. */
  beyond(amount: number): void;
};

type DeviceLimitsOptions = {
  ports: Pick<ConnectorPorts, 'othersWait' | 'measurementsPerSecond' | 'mayCatchUp'> & {
    throttle?: Pick<AccountThrottle, 'waitMs'> | undefined;
  };
  limits: { messagesPerSecond: number; messagesBurst: number; measurementsPerSecond: number };
  now: MonotonicClock;
  /** How many messages or measurements one device may send beyond its rates in a day. Absent: `beyondPerDay`. */
  beyondPerDay?: number;
  observe?: RateObserver;
};

/** How often a device that waits is looked at again, to see whether it may catch up now. */
export const lookMs = 100;

/** An option of each transport. Absent: no other transport of this process serves the same devices. */
export type SharedLimits = { deviceLimits?: DeviceLimits | undefined };

/** What an account's devices send together, over all transports. */
type AccountRates = {
  readonly id: number;
  rate: Rate;
  readonly measurements: TokenBucket;
  devices: number;
};

/** What a device has used of its rates, over all transports. */
export type DeviceRates = {
  readonly deviceId: number;
  readonly account: AccountRates;
  readonly messages: TokenBucket;
  readonly measurements: TokenBucket;
  /** Whatever is not a message: other packets, and polls over HTTP. */
  readonly others: TokenBucket;
  /** What is left of its daily amount beyond its rates; null: all of it. */
  beyond: TokenBucket | null;
  /** How many transports remember it. */
  users: number;
};

/**
 * Some months of one value a minute, or a week of five a second. A device that never stops sending is held to little
 * more than its rate even when nobody else sends, because its measurements have to be stored somewhere.
 */
const beyondPerDay = 5_000_000;
const daySeconds = 86_400;

/** When this many devices are remembered that no transport uses, those that may be forgotten are removed. */
const forgetAt = 1_000;

/**
 * How fast devices may send: what a message costs its device (`charge`), and how long the next one has to wait
 * (`waitMs`). Three things hold a device back: its own rates, its account's rate while others wait, and its account's
 * quotas. All transports of a process share one of these, so that a device has one rate whichever it uses.
 *
 * A device is remembered while a transport uses it, and as long as it differs from a new one.
 */
export class DeviceLimits {
  readonly messageRate: Rate;
  readonly #itemRate: Rate;
  readonly #beyondRate: Rate;
  readonly #options: DeviceLimitsOptions;
  readonly #now: MonotonicClock;
  readonly #devices = new Map<number, DeviceRates>();
  readonly #accounts = new Map<number, AccountRates>();
  /** Devices that no transport uses. */
  readonly #left = new Set<DeviceRates>();
  #forgetAt = forgetAt;

  constructor(options: DeviceLimitsOptions) {
    const { messagesPerSecond, messagesBurst, measurementsPerSecond } = options.limits;
    const mostBeyond = options.beyondPerDay ?? beyondPerDay;
    this.#options = options;
    this.#now = options.now;
    this.messageRate = { perSecond: messagesPerSecond, burst: messagesBurst };
    this.#itemRate = { perSecond: measurementsPerSecond, burst: measurementsPerSecond };
    this.#beyondRate = { perSecond: mostBeyond / daySeconds, burst: mostBeyond };
  }

  /** Whether devices may ever go beyond their rates. */
  get canCatchUp(): boolean {
    return this.#options.ports.mayCatchUp !== undefined;
  }

  /** The rates of a device. Whoever calls this has to call `leave` later. */
  enter({ deviceId, accountId }: DeviceIdentity): DeviceRates {
    const rates = this.#devices.get(deviceId) ?? this.#newDevice(deviceId, accountId);
    if (rates.users === 0) this.#left.delete(rates);
    rates.users += 1;
    return rates;
  }

  leave(rates: DeviceRates): void {
    rates.users -= 1;
    if (rates.users > 0) return;
    if (this.#isForgettable(rates)) return this.#forget(rates);
    this.#left.add(rates);
    if (this.#left.size < this.#forgetAt) return;
    for (const one of this.#left) if (this.#isForgettable(one)) this.#forget(one);
    // If few could be forgotten, the next sweep is far off.
    this.#forgetAt = Math.max(forgetAt, 2 * this.#left.size);
  }

  /**
   * Charges a device for what arrived. `items`: measurements, or what counts as such; the account is charged for them
   * too. `others`: packets that are no messages, and polls.
   */
  charge(
    { messages, measurements, others, account }: DeviceRates,
    arrived: { messages?: number; items?: number; others?: number },
    monotonicMs: MonotonicMs,
  ): void {
    if (arrived.messages) messages.take(arrived.messages, this.messageRate, monotonicMs);
    if (arrived.others) others.take(arrived.others, this.messageRate, monotonicMs);
    if (!arrived.items) return;
    measurements.take(arrived.items, this.#itemRate, monotonicMs);
    account.measurements.take(arrived.items, account.rate, monotonicMs);
  }

  /**
   * Milliseconds until the device's next message may be taken, by its own rates, its account's rate and its account's
   * quotas; 0: now. A transport that goes on reading while the account waits asks for each of the three instead.
   */
  waitMs(rates: DeviceRates): number {
    const { account } = rates;
    return Math.max(
      this.#options.ports.throttle?.waitMs(account.id) ?? 0,
      this.deviceWaitMs(rates),
      this.accountWaitMs(account),
    );
  }

  /**
   * Milliseconds until the device's own rates allow its next message; 0: now. A device that may catch up is let go on
   * at once: what it owes is forgiven, and counts against its daily amount beyond its rates.
   */
  deviceWaitMs(rates: DeviceRates): number {
    const { messages, measurements } = rates;
    if (messages.tokens > 0 && measurements.tokens > 0) return 0;
    const monotonicMs = this.#now();
    const waitMs = Math.max(
      messages.waitMs(this.messageRate, monotonicMs),
      measurements.waitMs(this.#itemRate, monotonicMs),
    );
    return waitMs > 0 && this.#mayExceed(rates, monotonicMs) ? 0 : waitMs;
  }

  /**
   * Milliseconds until the account is within its rate; 0: it is, or nobody else waits. What it owes while nobody waits
   * is forgiven.
   */
  accountWaitMs(account: AccountRates): number {
    if (account.measurements.tokens > 0) return 0;
    const { ports } = this.#options;
    const perSecond = ports.measurementsPerSecond(account.id);
    account.rate = { perSecond, burst: perSecond };
    const waitMs = account.measurements.waitMs(account.rate, this.#now());
    if (waitMs === 0 || ports.othersWait(account.id)) return waitMs;
    account.measurements.forgive();
    return 0;
  }

  /** Milliseconds until the device may send a packet that is no message, or a poll; 0: now. Nothing lifts this rate. */
  othersWaitMs({ others }: DeviceRates): number {
    return others.tokens > 0 ? 0 : others.waitMs(this.messageRate, this.#now());
  }

  /** Counts a message that has to wait for its device's rates. */
  countWait(): void {
    this.#options.observe?.waited();
  }

  /** Whether the device could send at full rate again. */
  isFull({ messages, measurements, others }: DeviceRates): boolean {
    const monotonicMs = this.#now();
    return (
      messages.isFull(this.messageRate, monotonicMs) &&
      measurements.isFull(this.#itemRate, monotonicMs) &&
      others.isFull(this.messageRate, monotonicMs)
    );
  }

  /** How many devices are remembered. */
  count(): number {
    return this.#devices.size;
  }

  /**
   * Whether the device may go beyond its rates now. False: others need the machine now, or its daily amount is used up.
   */
  #mayExceed(rates: DeviceRates, monotonicMs: MonotonicMs): boolean {
    const { ports, observe } = this.#options;
    if (!ports.mayCatchUp?.(rates.account.id)) return false;
    rates.beyond ??= new TokenBucket(this.#beyondRate, monotonicMs);
    if (rates.beyond.waitMs(this.#beyondRate, monotonicMs) > 0) return false;
    const owed = -Math.min(0, rates.messages.tokens, rates.measurements.tokens);
    rates.beyond.take(owed, this.#beyondRate, monotonicMs);
    rates.messages.forgive();
    rates.measurements.forgive();
    if (owed > 0) observe?.beyond(owed);
    return true;
  }

  #newDevice(deviceId: number, accountId: number): DeviceRates {
    const monotonicMs = this.#now();
    const account = this.#accounts.get(accountId) ?? this.#newAccount(accountId, monotonicMs);
    account.devices += 1;
    const rates: DeviceRates = {
      deviceId,
      account,
      messages: new TokenBucket(this.messageRate, monotonicMs),
      measurements: new TokenBucket(this.#itemRate, monotonicMs),
      others: new TokenBucket(this.messageRate, monotonicMs),
      beyond: null,
      users: 0,
    };
    this.#devices.set(deviceId, rates);
    return rates;
  }

  #newAccount(id: number, monotonicMs: MonotonicMs): AccountRates {
    const perSecond = this.#options.ports.measurementsPerSecond(id);
    const rate = { perSecond, burst: perSecond };
    const account = { id, rate, measurements: new TokenBucket(rate, monotonicMs), devices: 0 };
    this.#accounts.set(id, account);
    return account;
  }

  /**
   * What a device sent beyond its rates counts for a day, even if it reconnects in between. The last device of an
   * account is remembered as long as the account owes anything, because the account's debt is kept with it.
   */
  #isForgettable(rates: DeviceRates): boolean {
    const { account, beyond } = rates;
    const monotonicMs = this.#now();
    const isLast = account.devices === 1;
    if (isLast && !account.measurements.isFull(account.rate, monotonicMs)) return false;
    return this.isFull(rates) && (beyond?.isFull(this.#beyondRate, monotonicMs) ?? true);
  }

  #forget(rates: DeviceRates): void {
    const { deviceId, account } = rates;
    this.#left.delete(rates);
    this.#devices.delete(deviceId);
    account.devices -= 1;
    if (account.devices === 0) this.#accounts.delete(account.id);
  }
}
