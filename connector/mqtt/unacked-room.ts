import type { AccountConnections, Connection } from './connection.ts';

/**
 * An account may hold so many times what is still free. So one alone gets two thirds, two get two fifths
 * each, and whoever comes next finds room too, however many there are (dynamic thresholds: Choudhury and
 * Hahne, 1998).
 */
const shareOfFree = 2;
/** Accounts that are looked at in vain before the next message is waited for. */
const mostInVain = 8;

/** What messages that wait for their commit may take of the memory, all connections together. */
export function createUnackedRoom(maxBytes: number, resume: (connection: Connection) => void) {
  const waiting = new Set<AccountConnections>();
  let bytes = 0;

  const isFor = (account: AccountConnections | undefined) =>
    (account?.bytes ?? 0) < shareOfFree * (maxBytes - bytes);

  /** Accounts in turn, one connection each. */
  function resumeWaiting(): void {
    let inVain = 0;
    for (const account of waiting) {
      waiting.delete(account);
      const [first] = account.waiting;
      if (!first) continue;
      if (!isFor(account)) {
        waiting.add(account);
        inVain += 1;
        if (bytes >= maxBytes || inVain >= mostInVain) return;
        continue;
      }
      account.waiting.delete(first);
      if (account.waiting.size > 0) waiting.add(account);
      resume(first);
    }
  }

  return {
    /** Whether there is room for another message of the connection; where not, it is resumed when there is. */
    isFor(connection: Connection): boolean {
      const account = connection.device?.account;
      if (isFor(account)) return true;
      if (account) {
        account.waiting.add(connection);
        waiting.add(account);
      }
      return false;
    },

    hold({ device }: Pick<Connection, 'device'>, more: number): void {
      bytes += more;
      if (device) device.account.bytes += more;
    },

    release({ device }: Pick<Connection, 'device'>, less: number): void {
      bytes -= less;
      if (device) device.account.bytes -= less;
      if (waiting.size > 0) resumeWaiting();
    },

    forget(connection: Connection): void {
      connection.device?.account.waiting.delete(connection);
    },

    bytes: () => bytes,
  };
}
