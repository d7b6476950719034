import type { ConnectorPorts } from '../ports.ts';
import type { Bucket, Rate } from './rate-limit.ts';

/** What an account's devices bring together. */
export type AccountRate = { readonly id: number; rate: Rate; readonly measurements: Bucket };

/** How soon it is seen that nobody else waits any more. */
export const lookMs = 100;

type GateOptions = {
  ports: Pick<ConnectorPorts, 'othersWait' | 'measurementsPerSecond'>;
  now: () => number;
};

/**
 * Whether an account is beyond its measurements a second while messages of other accounts wait for their
 * turn. While nobody else waits an account may send as much as it can.
 */
export function createAccountGate({ ports, now }: GateOptions): (account: AccountRate) => boolean {
  return (account) => {
    if (account.measurements.tokens > 0) return false;
    const perSecond = ports.measurementsPerSecond(account.id);
    account.rate = { perSecond, burst: perSecond };
    const isWithin = account.measurements.waitMs(account.rate, now()) === 0;
    if (isWithin || ports.othersWait(account.id)) return !isWithin;
    account.measurements.forgive();
    return false;
  };
}
