import type { Log } from '../options.ts';
import type { Bridge } from './bridge.ts';
import type { BrokerAddress, StartLease } from './ports.ts';

export type StandByDeps = {
  broker: Pick<BrokerAddress, 'url'>;
  startLease: StartLease;
  startBridge: () => Bridge;
  log: Log;
};

/**
 * Runs the bridge while this process holds the lease, and only then. All who compete for it are the
 * same client to the broker: whoever gets it takes over the session, with all that was not
 * acknowledged, in its order. What the one before still had on its way is what the broker delivers
 * again, and is stored once.
 */
export async function startStandBy({ broker, startLease, startBridge, log }: StandByDeps) {
  const turn: { bridge: Bridge | null } = { bridge: null };
  const lease = await startLease({
    onHeld() {
      turn.bridge = startBridge();
    },
    onLost() {
      log.warn({ broker: broker.url }, 'the lease is lost; another process may serve the broker');
      turn.bridge?.abandon();
      turn.bridge = null;
    },
  });
  if (turn.bridge) await turn.bridge.ready;
  else log.info({ broker: broker.url }, 'another process serves the broker; this one stands by');

  return {
    /** As that of a bridge; afterwards another one may take over. */
    close: (options: { drainMs: number }): Promise<void> =>
      lease.release(async () => turn.bridge?.close(options)),
  };
}
