import { upPrefix } from '../../src/contract/topic.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { createAccountGate, lookMs, type AccountRate } from '../device/account-gate.ts';
import { Bucket, type Rate } from '../device/rate-limit.ts';
import type { ConnectorLimits } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';

/** A message that waits because of the rates of its device or account. */
export type InLine = {
  sinceMs: number;
  /** It is its turn. */
  go(): void;
  /** It has waited for too long, and would for about `waitMs` more; 0: the service stops. */
  giveUp(waitMs: number): void;
};

/** What is remembered of a device between its requests, until its rates have recovered. */
export type HttpDevice = {
  identity: DeviceIdentity;
  account: AccountRate & { devices: number };
  upPrefix: string;
  messages: Bucket;
  measurements: Bucket;
  /** In the order of arrival, over all its connections. */
  line: InLine[];
  timer: NodeJS.Timeout | null;
  /** When it was last told that something was read of it. */
  toldMs: number;
};

export type DevicesOptions = {
  ports: Pick<ConnectorPorts, 'othersWait' | 'measurementsPerSecond' | 'holds' | 'presence'>;
  limits: Pick<ConnectorLimits, 'messagesPerSecond' | 'messagesBurst' | 'measurementsPerSecond'>;
  now: () => number;
};

/** So long an answer is delayed; who would have to wait longer is told so instead. */
export const longestDelayMs = 10_000;
const seenEveryMs = 1_000;

export type HttpDevices = ReturnType<typeof createHttpDevices>;

/** Devices that send over HTTP: at the same rates as over MQTT, and each one's messages in their order. */
export function createHttpDevices({ ports, limits, now }: DevicesOptions) {
  const messageRate: Rate = { perSecond: limits.messagesPerSecond, burst: limits.messagesBurst };
  const { measurementsPerSecond: perSecond } = limits;
  const measurementRate: Rate = { perSecond, burst: perSecond };
  const isBeyond = createAccountGate({ ports, now });
  const devices = new Map<number, HttpDevice>();
  const accounts = new Map<number, HttpDevice['account']>();

  function accountOf(id: number, nowMs: number): HttpDevice['account'] {
    const known = accounts.get(id);
    if (known) return known;
    const ofAccount = ports.measurementsPerSecond(id);
    const rate = { perSecond: ofAccount, burst: ofAccount };
    const account = { id, rate, measurements: new Bucket(rate, nowMs), devices: 0 };
    accounts.set(id, account);
    return account;
  }

  function deviceOf(identity: DeviceIdentity): HttpDevice {
    const known = devices.get(identity.deviceId);
    if (known) return known;
    const nowMs = now();
    const account = accountOf(identity.accountId, nowMs);
    account.devices += 1;
    const device: HttpDevice = {
      identity,
      account,
      upPrefix: upPrefix(identity.uuid),
      messages: new Bucket(messageRate, nowMs),
      measurements: new Bucket(measurementRate, nowMs),
      line: [],
      timer: null,
      toldMs: -Infinity,
    };
    devices.set(identity.deviceId, device);
    return device;
  }

  /** In how many ms the device's next message may go, as far as can be said. */
  function waitMs({ messages, measurements, account }: HttpDevice): number {
    const held = ports.holds?.waitMs(account.id) ?? 0;
    const isFree = messages.tokens > 0 && measurements.tokens > 0;
    if (isFree && account.measurements.tokens > 0) return held;
    const nowMs = now();
    return Math.max(
      held,
      messages.waitMs(messageRate, nowMs),
      measurements.waitMs(measurementRate, nowMs),
      isBeyond(account) ? account.measurements.waitMs(account.rate, nowMs) : 0,
    );
  }

  function look(device: HttpDevice): void {
    device.timer = null;
    const { line } = device;
    const lateMs = now() - longestDelayMs;
    let wait = 0;
    while (line.length > 0) {
      const [first] = line as [InLine];
      wait = waitMs(device);
      const isLate = first.sinceMs <= lateMs;
      if (wait > 0 && !isLate) break;
      line.shift();
      if (wait > 0) first.giveUp(wait);
      else first.go();
    }
    if (line.length > 0) device.timer = setTimeout(() => look(device), Math.min(wait, lookMs));
  }

  return {
    of: deviceOf,

    /** How long a message that comes now would wait, ms. */
    waitMs: (device: HttpDevice): number =>
      waitMs(device) + (device.line.length * 1_000) / messageRate.perSecond,

    /** Runs `go` in the device's order, as soon as its rates allow. */
    enter(device: HttpDevice, one: InLine): void {
      const wait = device.line.length === 0 ? waitMs(device) : 0;
      if (device.line.length === 0 && wait === 0) return one.go();
      device.line.push(one);
      device.timer ??= setTimeout(() => look(device), Math.min(wait, lookMs));
    },

    /** A message goes on: `items` as of `Parsed`. */
    take(device: HttpDevice, items: number): void {
      const nowMs = now();
      device.messages.take(1, messageRate, nowMs);
      // What is wrong costs as much as what is right, and an event as much as a measurement.
      device.measurements.take(items, measurementRate, nowMs);
      device.account.measurements.take(items, device.account.rate, nowMs);
      if (nowMs - device.toldMs < seenEveryMs) return;
      device.toldMs = nowMs;
      ports.presence(device.identity, 'seen');
    },

    /** Forgets those that could send at full rate again. */
    forgetIdle(): void {
      const nowMs = now();
      for (const [id, { messages, measurements, line, account }] of devices) {
        if (line.length > 0 || !messages.isFull(messageRate, nowMs)) continue;
        if (!measurements.isFull(measurementRate, nowMs)) continue;
        devices.delete(id);
        account.devices -= 1;
        if (account.devices === 0) accounts.delete(account.id);
      }
    },

    countWaiting(): number {
      let count = 0;
      for (const { line } of devices.values()) count += line.length;
      return count;
    },

    /** Nothing waits any longer. */
    stop(): void {
      for (const device of devices.values()) {
        if (device.timer) clearTimeout(device.timer);
        device.timer = null;
        for (const one of device.line.splice(0)) one.giveUp(0);
      }
    },
  };
}
