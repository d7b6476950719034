import { createHash } from 'node:crypto';

/** Where devices connect; the members of the registration answer, specification section 2.4. */
export type ConnectorAddress = {
  id: number;
  name: string;
  protocol: string;
  host: string;
  port: number;
};

/**
 * Picks a device's connector by rendezvous hashing: the one whose hash with the device's uuid is
 * highest. Adding a connector moves only the share that it takes over. Throws when there is none.
 */
export function pickConnector(
  connectors: readonly ConnectorAddress[],
  deviceUuid: string,
): ConnectorAddress {
  let picked: { connector: ConnectorAddress; score: bigint } | undefined;
  for (const connector of connectors) {
    const score = scoreOf(connector.id, deviceUuid);
    if (!picked || score > picked.score) picked = { connector, score };
  }
  if (!picked) throw new Error('no connector is configured');
  return picked.connector;
}

function scoreOf(connectorId: number, deviceUuid: string): bigint {
  return createHash('sha256').update(`${connectorId}:${deviceUuid}`).digest().readBigUInt64BE();
}
