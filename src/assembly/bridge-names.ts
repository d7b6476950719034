import type { ConnectorSettings } from '../config/settings.ts';

export type BridgeSettings = Extract<ConnectorSettings, { kind: 'bridge' }>;

const standByName = 'sensorium-bridge';

/** What a bridge is called at the broker. */
export function namesAtBroker({ id, broker: { username, shareName } }: BridgeSettings): {
  username: string;
  clientId: string;
} {
  // Brokers are told to take the name for the session's: those who share must not share one.
  const user = username ?? (shareName === null ? standByName : `${standByName}-${id}`);
  // Of the connector or the service, not of the process: the next one takes up what this one left.
  return { username: user, clientId: shareName === null ? user : `${shareName}-${id}` };
}

/** The lease of bridges of which one at a time is connected; null where they share. */
export function leaseNameOf(settings: BridgeSettings): string | null {
  const { url, shareName } = settings.broker;
  return shareName === null ? `${url} ${namesAtBroker(settings).clientId}` : null;
}

/** The bridges among connectors. */
export function bridgesAmong(connectors: ConnectorSettings[]): BridgeSettings[] {
  return connectors.filter((connector) => connector.kind === 'bridge');
}
