import { randomUUID } from 'node:crypto';
import { connect } from 'mqtt';
import { refusalCodeOf } from './mqtt-js.ts';
import type { BrokerAddress } from './ports.ts';

const patienceMs = 2_000;

/**
 * Whether a broker answers, be it with a refusal. Asked by nobody in particular: a broker that makes
 * the user name the client identifier would end the connection of the bridge that serves it, for a
 * second one of the same name.
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
    // A number is the reason code of its answer.
    .on('error', (error) => resolve(refusalCodeOf(error) !== null))
    .on('close', () => resolve(false));
  return promise.finally(() => client.end(true));
}
