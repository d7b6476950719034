import { createHash } from 'node:crypto';
import { z } from 'zod';
import { DomainError } from '../errors.ts';

/** Where devices connect; the members of the registration answer, specification section 2.4. */
export type ConnectorAddress = {
  id: number;
  /** Of kind `mqtt` alone devices hold a connection that is seen here. */
  kind: 'mqtt' | 'http' | 'bridge';
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

/** Ids of connectors whose devices hold no connection that is seen here. */
export const intermittentAmong = (
  connectors: readonly Pick<ConnectorAddress, 'id' | 'kind'>[],
): number[] => connectors.filter(({ kind }) => kind !== 'mqtt').map(({ id }) => id);

/** What a registration may ask for. */
export const AskedProtocol = z.enum(['mqtt', 'http']);
export type AskedProtocol = z.infer<typeof AskedProtocol>;

const overHttp = ['http', 'https'];

/**
 * Picks the connector of a new device among those that speak what it asked for; where it did not say, MQTT.
 * `path`: where it asked. Throws `invalid-input` where none is configured.
 */
export function pickAsked(
  connectors: readonly ConnectorAddress[],
  deviceUuid: string,
  asked: AskedProtocol | undefined,
  path = '/protocol',
): ConnectorAddress {
  const wantsHttp = asked === 'http';
  const suited = connectors.filter(({ protocol }) => overHttp.includes(protocol) === wantsHttp);
  if (suited.length > 0) return pickConnector(suited, deviceUuid);
  if (asked === undefined) return pickConnector(connectors, deviceUuid);
  const message = `no connector for ${asked} is configured here`;
  throw new DomainError('invalid-input', 'The device cannot be given such a connector.', {
    problems: [{ path, message }],
  });
}

function scoreOf(connectorId: number, deviceUuid: string): bigint {
  return createHash('sha256').update(`${connectorId}:${deviceUuid}`).digest().readBigUInt64BE();
}
