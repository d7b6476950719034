import { createAccountGate, lookMs } from '../device/account-gate.ts';
import { type Rate } from '../device/rate-limit.ts';
import type { ConnectorLimits } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import type { AccountConnections, Connection, Device } from './connection.ts';

export type Rates = { messages: Rate; measurements: Rate; others: Rate; connects: Rate };

export function ratesOf(limits: ConnectorLimits): Rates {
  const messages = { perSecond: limits.messagesPerSecond, burst: limits.messagesBurst };
  const perSecond = limits.measurementsPerSecond;
  const connects = { perSecond: limits.reconnectsPerSecond, burst: limits.reconnectsBurst };
  return { messages, measurements: { perSecond, burst: perSecond }, others: messages, connects };
}

export type RateGateOptions = {
  ports: Pick<ConnectorPorts, 'othersWait' | 'measurementsPerSecond'>;
  rates: Rates;
  now: () => number;
};

export type RateGate = ReturnType<typeof createRateGate>;

/**
 * Whose connections are not read for a while: a device's that is beyond its rates; and an account's that is
 * beyond its measurements a second while messages of other accounts wait for their turn. While nobody else
 * waits an account may send as much as it can.
 */
export function createRateGate({ ports, rates, now }: RateGateOptions) {
  const isBeyond = createAccountGate({ ports, now });

  function isPaused(device: Device): boolean {
    if (device.timer) return true;
    const { messages, measurements, others } = device;
    if (messages.tokens > 0 && measurements.tokens > 0 && others.tokens > 0) return false;
    const nowMs = now();
    const waitMs = Math.max(
      messages.waitMs(rates.messages, nowMs),
      measurements.waitMs(rates.measurements, nowMs),
      others.waitMs(rates.others, nowMs),
    );
    if (waitMs === 0) return false;
    device.timer = setTimeout(() => {
      device.timer = null;
      for (const connection of device.connections) connection.resume();
    }, waitMs);
    return true;
  }

  function wait(account: AccountConnections): void {
    if (account.timer) return;
    const waitMs = account.measurements.waitMs(account.rate, now());
    account.timer = setTimeout(() => resumePaused(account), Math.min(lookMs, waitMs));
  }

  function resumePaused(account: AccountConnections): void {
    account.timer = null;
    for (const connection of account.paused) {
      if (isBeyond(account)) return wait(account);
      account.paused.delete(connection);
      connection.resume();
    }
  }

  return {
    /** Whether the connection may not be read now; it is resumed when it may. */
    mustWait(connection: Connection, device: Device): boolean {
      if (isPaused(device)) return true;
      const { account } = device;
      if (!isBeyond(account)) return false;
      account.paused.add(connection);
      wait(account);
      return true;
    },

    forget(connection: Connection): void {
      const { device } = connection;
      if (device?.timer && device.connections.length === 0) {
        clearTimeout(device.timer);
        device.timer = null;
      }
      const account = device?.account;
      if (!account?.paused.delete(connection) || account.paused.size > 0 || !account.timer) return;
      clearTimeout(account.timer);
      account.timer = null;
    },
  };
}
