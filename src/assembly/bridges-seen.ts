import { listLiveBridges } from '../broker-hooks/bridge-status.ts';
import type { LiveBridge } from '../broker-hooks/bridge-status.ts';
import type { Sql } from '../db/sql.ts';
import type { ConnectorSettings } from '../config/settings.ts';
import { bridgesAmong, leaseNameOf } from './bridge-names.ts';
import type { BridgeSettings } from './bridge-names.ts';

/** A bridge of the configuration, wherever it runs, as anybody may see it. */
export type SeenBridge = {
  connectorName: string;
  /** `absent`: no process runs it. */
  state: 'connected' | 'disconnected' | 'absent';
  /** Since when, ms; null where no process runs it. */
  sinceTs: number | null;
  /** Why it is not connected, as a code; null where it is, or no process runs it. */
  reason: string | null;
  /** Where one at a time is connected: whether some process holds the lease. */
  lease: 'held' | 'free' | null;
  /** The process that holds it, as its machine and number. */
  holder: string | null;
  /** The last message from the broker and to it, of all processes that run it now, ms. */
  lastInTs: number | null;
  lastOutTs: number | null;
  /** Messages that were not taken, of the same processes since their start. */
  refused: number;
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
  const holder = rows.find(({ isLeaseHeld }) => isLeaseHeld);
  return {
    connectorName: bridge.name,
    state: decisive === undefined ? 'absent' : decisive.isConnected ? 'connected' : 'disconnected',
    sinceTs: decisive?.sinceTs ?? null,
    reason: decisive?.reason ?? null,
    lease: lease === null ? null : holder ? 'held' : 'free',
    holder: holder?.process ?? null,
    lastInTs: newestOf(rows.map(({ lastInTs }) => lastInTs)),
    lastOutTs: newestOf(rows.map(({ lastOutTs }) => lastOutTs)),
    refused: rows.reduce((sum, { refused }) => sum + refused, 0),
  };
}

function newestOf(times: (number | null)[]): number | null {
  return times.reduce((newest, ts) => (ts === null ? newest : Math.max(newest ?? ts, ts)), null);
}
