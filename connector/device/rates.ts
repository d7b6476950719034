import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { ConnectorPorts } from '../ports.ts';
import { Bucket, type Rate } from './rate-limit.ts';
import { type AccountRates, createRememberedRates, type DeviceRates } from './remembered-rates.ts';

/** Called on the way of messages: to be quick. */
export type RateObserver = {
  /** A device has to wait. */
  waited(): void;
  /** So much was let in beyond a device's rates, in messages or measurements. */
  beyond(amount: number): void;
};

export type RateStoreOptions = {
  ports: Pick<ConnectorPorts, 'othersWait' | 'measurementsPerSecond' | 'mayCatchUp'>;
  limits: { messagesPerSecond: number; messagesBurst: number; measurementsPerSecond: number };
  now: () => number;
  /** What one device may bring beyond its rates in a day, in messages or measurements; absent: `beyondPerDay`. */
  beyondPerDay?: number;
  observe?: RateObserver;
};

/** How soon it is seen that nobody else waits any more. */
export const lookMs = 100;

/** Of a transport. Absent: no other one of the process serves the same devices. */
export type SharedRates = { rateStore?: RateStore | undefined };

/** Shared by the transports of a process, so that a device has one rate, whichever it uses. */
export type RateStore = {
  messageRate: Rate;
  /** Whether devices may ever go beyond their rates. */
  canCatchUp: boolean;
  /** To be left again by whoever entered it. */
  enter(identity: DeviceIdentity): DeviceRates;
  leave(rates: DeviceRates): void;
  takeMessages(rates: DeviceRates, count: number, nowMs: number): void;
  /** Measurements or what is charged as such, of the device and its account. */
  takeItems(rates: DeviceRates, count: number, nowMs: number): void;
  takeOthers(rates: DeviceRates, count: number, nowMs: number): void;
  /** Milliseconds until the device's rates let its next message be read; 0: now. */
  waitMs(rates: DeviceRates): number;
  /**
   * Lets a device go on that its rates would have wait: forgives what it owes, and counts that as brought beyond its
   * rates. False: it may not now, or not any more today.
   */
  letGoOn(rates: DeviceRates): boolean;
  othersWaitMs(rates: DeviceRates): number;
  /** Whether its account is beyond its rate while others wait. What it owes while nobody waits is forgiven. */
  isBeyond(account: AccountRates): boolean;
  /** A message of a device has to wait for its rates. */
  countWait(): void;
  /** Whether it could send at full rate again. */
  isFull(rates: DeviceRates): boolean;
  /** Devices that are remembered. */
  count(): number;
};

/**
 * Some months of a value a minute, or a week of five a second. A device that sends without end is held to little
 * more than its rate, whether or not others are there: its measurements have to be stored somewhere.
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
    const nowMs = now();
    return {
      deviceId,
      account,
      messages: new Bucket(messageRate, nowMs),
      measurements: new Bucket(itemRate, nowMs),
      others: new Bucket(messageRate, nowMs),
      beyond: null,
      users: 0,
    };
  }

  /**
   * What it brought beyond its rates counts for a day, also where it comes again in between. The last device of an account
   * is remembered for as long as the account owes anything.
   */
  function isForgettable(rates: DeviceRates): boolean {
    const { account, beyond } = rates;
    const isLast = account.devices === 1;
    if (isLast && !account.measurements.isFull(account.rate, now())) return false;
    return isFull(rates) && (beyond?.isFull(beyondRate, now()) ?? true);
  }

  function isFull({ messages, measurements, others }: DeviceRates): boolean {
    const nowMs = now();
    return (
      messages.isFull(messageRate, nowMs) &&
      measurements.isFull(itemRate, nowMs) &&
      others.isFull(messageRate, nowMs)
    );
  }

  function waitMs({ messages, measurements }: DeviceRates): number {
    if (messages.tokens > 0 && measurements.tokens > 0) return 0;
    const nowMs = now();
    return Math.max(messages.waitMs(messageRate, nowMs), measurements.waitMs(itemRate, nowMs));
  }

  function letGoOn(rates: DeviceRates): boolean {
    if (!ports.mayCatchUp?.(rates.account.id)) return false;
    const nowMs = now();
    rates.beyond ??= new Bucket(beyondRate, nowMs);
    if (rates.beyond.waitMs(beyondRate, nowMs) > 0) return false;
    const owed = -Math.min(0, rates.messages.tokens, rates.measurements.tokens);
    rates.beyond.take(owed, beyondRate, nowMs);
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

    takeMessages: (rates, count, nowMs) => rates.messages.take(count, messageRate, nowMs),

    takeItems({ measurements, account }, count, nowMs) {
      measurements.take(count, itemRate, nowMs);
      account.measurements.take(count, account.rate, nowMs);
    },

    takeOthers: (rates, count, nowMs) => rates.others.take(count, messageRate, nowMs),

    waitMs,
    letGoOn,
    othersWaitMs: ({ others }) => (others.tokens > 0 ? 0 : others.waitMs(messageRate, now())),
    isBeyond,
    countWait: () => observe?.waited(),
    isFull,
    count: remembered.count,
  };
}
