import { randomUUID } from 'node:crypto';
import { connect } from 'mqtt';
import { refusalCodeOf } from './mqtt-js.ts';
import type { BrokerAddress } from './ports.ts';

const patienceMs = 2_000;

/**
 * Whether a broker answers, even with a refusal. Without user name and password: a broker that takes the
 * user name for the client identifier would close the connection of the bridge that has it.
 */
export function isBrokerThere({ url, ca }: Pick<BrokerAddress, 'url' | 'ca'>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const address = new URL(url);
  address.username = '';
  address.password = '';
  const client = connect(address.href, {
    protocolVersion: 5,
    clientId: `probe-${randomUUID()}`,
    clean: true,
    reconnectPeriod: 0,
    connectTimeout: patienceMs,
    ...(ca === undefined ? {} : { ca }),
  });
  client
    .on('connect', () => resolve(true))
    // A refusal is an answer.
    .on('error', (error) => resolve(refusalCodeOf(error) !== null))
    .on('close', () => resolve(false));
  return promise.finally(() => client.end(true));
}
