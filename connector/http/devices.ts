import { upPrefix } from '../../src/contract/topic.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { lookMs, type RateStore } from '../device/rates.ts';
import type { DeviceRates } from '../device/remembered-rates.ts';
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
  rates: DeviceRates;
  upPrefix: string;
  /** In the order of arrival, over all its connections. */
  line: InLine[];
  timer: NodeJS.Timeout | null;
  /** When it was last told that something was read of it. */
  toldMs: number;
};

export type DevicesOptions = {
  ports: Pick<ConnectorPorts, 'holds' | 'presence'>;
  rateStore: RateStore;
  now: () => number;
};

/** So long an answer is delayed; who would have to wait longer is told so instead. */
export const longestDelayMs = 10_000;
const seenEveryMs = 1_000;

export type HttpDevices = ReturnType<typeof createHttpDevices>;

/** Devices that send over HTTP: at the same rates as over MQTT, and each one's messages in their order. */
export function createHttpDevices({ ports, rateStore, now }: DevicesOptions) {
  const devices = new Map<number, HttpDevice>();

  function deviceOf(identity: DeviceIdentity): HttpDevice {
    const known = devices.get(identity.deviceId);
    if (known) return known;
    const device: HttpDevice = {
      identity,
      rates: rateStore.enter(identity),
      upPrefix: upPrefix(identity.uuid),
      line: [],
      timer: null,
      toldMs: -Infinity,
    };
    devices.set(identity.deviceId, device);
    return device;
  }

  /** In how many ms the device's next message may go, as far as can be said. */
  function waitMs({ identity, rates }: HttpDevice): number {
    const heldMs = ports.holds?.waitMs(identity.accountId) ?? 0;
    const rateMs = rateStore.waitMs(rates);
    const ownMs = rateMs > 0 && rateStore.letGoOn(rates) ? 0 : rateMs;
    const { account } = rates;
    if (!rateStore.isBeyond(account)) return Math.max(heldMs, ownMs);
    return Math.max(heldMs, ownMs, account.measurements.waitMs(account.rate, now()));
  }

  function tellSeen(device: HttpDevice, nowMs: number): void {
    if (nowMs - device.toldMs < seenEveryMs) return;
    device.toldMs = nowMs;
    ports.presence(device.identity, 'seen');
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
      waitMs(device) + (device.line.length * 1_000) / rateStore.messageRate.perSecond,

    /** Runs `go` in the device's order, as soon as its rates allow. */
    enter(device: HttpDevice, one: InLine): void {
      const wait = device.line.length === 0 ? waitMs(device) : 0;
      if (device.line.length === 0 && wait === 0) return one.go();
      rateStore.countWait();
      device.line.push(one);
      device.timer ??= setTimeout(() => look(device), Math.min(wait, lookMs));
    },

    /** A message goes on: `items` as of `Parsed`. */
    take(device: HttpDevice, items: number): void {
      const nowMs = now();
      rateStore.takeMessages(device.rates, 1, nowMs);
      // What is wrong costs as much as what is right, and an event as much as a measurement.
      rateStore.takeItems(device.rates, items, nowMs);
      tellSeen(device, nowMs);
    },

    /** Counts a request for what waits; where it asks too often, gives the ms after which it may again. */
    takePoll(device: HttpDevice): number {
      const waitMs = rateStore.othersWaitMs(device.rates);
      if (waitMs > 0) return waitMs;
      const nowMs = now();
      rateStore.takeOthers(device.rates, 1, nowMs);
      tellSeen(device, nowMs);
      return 0;
    },

    /** Forgets those that could send at full rate again. */
    forgetIdle(): void {
      for (const [id, { line, rates }] of devices) {
        if (line.length > 0 || !rateStore.isFull(rates)) continue;
        devices.delete(id);
        rateStore.leave(rates);
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
