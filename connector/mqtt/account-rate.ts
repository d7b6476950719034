import type { AccountConnections, Connection } from './connection.ts';
import type { ConnectorPorts } from '../ports.ts';

export type AccountRateOptions = {
  ports: Pick<ConnectorPorts, 'othersWait' | 'measurementsPerSecond'>;
  resume: (connection: Connection) => void;
  now: () => number;
};

/** How soon it is seen that nobody else waits any more. */
const lookMs = 100;

export type AccountRate = ReturnType<typeof createAccountRate>;

/**
 * Holds an account's devices to its measurements a second while messages of other accounts wait for their
 * turn: its connections are not read meanwhile. While nobody else waits it may send as much as it can.
 */
export function createAccountRate({ ports, resume, now }: AccountRateOptions) {
  function isBeyond(account: AccountConnections): boolean {
    if (account.measurements.hasTokens) return false;
    const perSecond = ports.measurementsPerSecond(account.id);
    account.rate = { perSecond, burst: perSecond };
    const isWithin = account.measurements.waitMs(account.rate, now()) === 0;
    if (isWithin || ports.othersWait(account.id)) return !isWithin;
    account.measurements.forgive();
    return false;
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
      resume(connection);
    }
  }

  return {
    /** Whether the connection may not be read now; it is resumed when it may. */
    mustWait(connection: Connection, account: AccountConnections): boolean {
      if (!isBeyond(account)) return false;
      account.paused.add(connection);
      wait(account);
      return true;
    },

    forget(connection: Connection): void {
      const account = connection.device?.account;
      if (!account?.paused.delete(connection) || account.paused.size > 0 || !account.timer) return;
      clearTimeout(account.timer);
      account.timer = null;
    },
  };
}
