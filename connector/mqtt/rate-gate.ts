import { lookMs, type RateStore } from '../device/rates.ts';
import type { DeviceRates } from '../device/remembered-rates.ts';
import type { AccountConnections, Connection, Device } from './connection.ts';

export type RateGateOptions = {
  rateStore: RateStore;
  now: () => number;
};

export type RateGate = ReturnType<typeof createRateGate>;

/** So many devices that wait are asked about at once: with all of them, asking would cost more than it brings. */
const mostLooks = 200;

/**
 * Whose connections are not read for a while: a device's that is beyond its rates and may not catch up; and an
 * account's that is beyond its measurements a second while messages of other accounts wait for their turn. While
 * nobody else waits an account may send as much as it can.
 */
export function createRateGate({ rateStore, now }: RateGateOptions) {
  /** Devices that wait, and may go on before their time where nobody else wants the machine. */
  const hopeful = new Set<Device>();
  let looking: NodeJS.Timeout | null = null;

  function isPaused(device: Device): boolean {
    if (device.timer) return true;
    const waitMs = waitOrGoOn(device);
    if (waitMs === 0) return false;
    rateStore.countWait();
    device.timer = setTimeout(() => goOn(device), waitMs);
    if (rateStore.canCatchUp) {
      hopeful.add(device);
      looking ??= setInterval(look, lookMs);
    }
    return true;
  }

  /** In how many ms it may be read; 0: now, where need be beyond its rates. */
  function waitOrGoOn({ rates }: Device): number {
    const othersMs = rateStore.othersWaitMs(rates);
    const waitMs = rateStore.waitMs(rates);
    return waitMs > 0 && rateStore.letGoOn(rates) ? othersMs : Math.max(othersMs, waitMs);
  }

  function look(): void {
    let looks = Math.min(hopeful.size, mostLooks);
    for (const device of hopeful) {
      if (looks-- === 0) break;
      // Behind those that were not asked about.
      hopeful.delete(device);
      if (waitOrGoOn(device) === 0) goOn(device);
      else hopeful.add(device);
    }
    endLooking();
  }

  function goOn(device: Device): void {
    stopWaiting(device);
    for (const connection of device.connections) connection.resume();
  }

  function stopWaiting(device: Device): void {
    if (device.timer) clearTimeout(device.timer);
    device.timer = null;
    hopeful.delete(device);
    endLooking();
  }

  function endLooking(): void {
    if (!looking || hopeful.size > 0) return;
    clearInterval(looking);
    looking = null;
  }

  function wait(account: AccountConnections, rates: Device['rates']['account']): void {
    if (account.timer) return;
    const waitMs = rates.measurements.waitMs(rates.rate, now());
    account.timer = setTimeout(() => resumePaused(account, rates), Math.min(lookMs, waitMs));
  }

  function resumePaused(account: AccountConnections, rates: Device['rates']['account']): void {
    account.timer = null;
    for (const connection of account.paused) {
      if (rateStore.isBeyond(rates)) return wait(account, rates);
      account.paused.delete(connection);
      connection.resume();
    }
  }

  return {
    /** Whether the connection may not be read now; it is resumed when it may. */
    mustWait(connection: Connection, device: Device): boolean {
      if (!device.timer && areWithin(device.rates)) return false;
      if (isPaused(device)) return true;
      const { account, rates } = device;
      if (!rateStore.isBeyond(rates.account)) return false;
      account.paused.add(connection);
      wait(account, rates.account);
      return true;
    },

    forget(connection: Connection): void {
      const { device } = connection;
      if (device?.timer && device.connections.length === 0) stopWaiting(device);
      const account = device?.account;
      if (!account?.paused.delete(connection) || account.paused.size > 0 || !account.timer) return;
      clearTimeout(account.timer);
      account.timer = null;
    },
  };
}

/** Nearly all, so that it is asked first, and without a look at the clock: buckets only fill by themselves. */
function areWithin({ messages, measurements, others, account }: DeviceRates): boolean {
  const ofDevice = messages.tokens > 0 && measurements.tokens > 0 && others.tokens > 0;
  return ofDevice && account.measurements.tokens > 0;
}
