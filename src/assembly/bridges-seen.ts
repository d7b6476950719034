import { listLiveBridges } from '../broker/bridge-status.ts';
import type { LiveBridge } from '../broker/bridge-status.ts';
import type { Sql } from '../db/sql.ts';
import type { ConnectorSettings } from '../settings.ts';
import { bridgesAmong, leaseNameOf } from './bridge-names.ts';
import type { BridgeSettings } from './bridge-names.ts';

/** A bridge of the configuration, wherever it runs, as anybody may see it. */
export type SeenBridge = {
  connectorName: string;
  /** `absent`: no process runs it. */
  state: 'connected' | 'disconnected' | 'absent';
  /** Since when, ms; null where no process runs it. */
  sinceTs: number | null;
  /** Where one at a time is connected: whether some process holds the lease. */
  lease: 'held' | 'free' | null;
};

/** How all bridges of the configuration stand, whichever process runs them. */
export async function listSeenBridges(
  db: Sql,
  connectors: ConnectorSettings[],
): Promise<SeenBridge[]> {
  const bridges = bridgesAmong(connectors);
  if (bridges.length === 0) return [];
  const live = await listLiveBridges(db);
  return bridges.map((bridge) => see(bridge, bridges, live));
}

/** Connectors with one lease are served together: one of them is connected for all. */
function see(bridge: BridgeSettings, bridges: BridgeSettings[], live: LiveBridge[]): SeenBridge {
  const lease = leaseNameOf(bridge);
  const isPartner = ({ connectorId }: LiveBridge) =>
    connectorId === bridge.id ||
    (lease !== null &&
      bridges.some((other) => other.id === connectorId && leaseNameOf(other) === lease));
  const rows = live.filter(isPartner);
  const decisive =
    rows.find(({ isConnected }) => isConnected) ??
    rows.find(({ isLeaseHeld }) => isLeaseHeld) ??
    rows[0];
  const isHeld = rows.some(({ isLeaseHeld }) => isLeaseHeld);
  return {
    connectorName: bridge.name,
    state: decisive === undefined ? 'absent' : decisive.isConnected ? 'connected' : 'disconnected',
    sinceTs: decisive?.sinceTs ?? null,
    lease: lease === null ? null : isHeld ? 'held' : 'free',
  };
}
