import type { Connector } from '../../connector/mqtt/server.ts';
import type { AccountThrottle } from '../contract/uplink.ts';
import { intermittentAmong } from '../devices/pick-connector.ts';
import type { Ingest } from '../ingest/ingest.ts';
import { startTicks } from '../ingest/ticks.ts';
import type { ListeningWatch } from '../listening/listening.ts';
import { observeTicks } from '../metrics/observe-ticks.ts';
import type { Shared } from './shared.ts';

type TicksSide = {
  ingest: Pick<Ingest, 'tick'>;
  holds: AccountThrottle;
  connector: Pick<Connector, 'isConnected'> | null;
  listening: Pick<ListeningWatch, 'isHere' | 'isKnownAt'>;
};

/** Evaluates timed conditions (a duration, a silence) when they are due: this process takes what is due of its own at once, of others a little later. */
export function startTicksOf(
  shared: Shared,
  { ingest, holds, connector, listening }: TicksSide,
): void {
  const { config, db, clock, monotonicClock, log, metrics, releases } = shared;
  const intermittent = new Set(intermittentAmong(config.connectors));
  const ticks = startTicks({
    db,
    clock,
    nowMs: monotonicClock,
    tick: ingest.tick,
    isHere: ({ uuid, connectorId, isConnected }) =>
      connector?.isConnected(uuid) === true ||
      // Of several processes with that connector each may take it: the second one finds nothing due.
      ((intermittent.has(connectorId) || !isConnected) && listening.isHere(connectorId)),
    isHeardOf: ({ connectorId, dueTs }) => listening.isKnownAt(connectorId, dueTs),
    isHeld: (accountId) => holds.waitMs(accountId) > 0,
    log: log.child({ component: 'ingest' }),
    observe: observeTicks(metrics.registry),
  });
  releases.add('ticks', () => ticks.close());
}
