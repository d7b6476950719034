import type { ConnectorSettings } from '../config/settings.ts';
import { startListening, type ListeningWatch } from '../listening/listening.ts';
import { leaseNameOf } from './bridge-names.ts';
import type { Shared } from './shared.ts';

/** Since when, and when not, the connectors of the configuration listen to their devices. */
export async function startListeningOf(shared: Shared): Promise<ListeningWatch> {
  const { config, db, clock, releases } = shared;
  const log = shared.log.child({ component: 'devices' });
  const leaders = leadersAmong(config.connectors);
  const listening = await startListening({
    db,
    clock,
    leaderOf: (connectorId) => leaders.get(connectorId) ?? null,
    onError: (err) =>
      log.warn(
        { event: 'listening.unwritten', err },
        'When connectors listened could not be stored; it is tried again.',
      ),
  });
  releases.add('listening', () => listening.close());
  return listening;
}

/** By connector, the first one of the configuration that has the same devices: bridges share those of a broker. */
export function leadersAmong(connectors: readonly ConnectorSettings[]): Map<number, number> {
  const firsts = new Map<string, number>();
  return new Map(
    connectors.map((connector) => {
      const name = sharedName(connector);
      const first = firsts.get(name) ?? connector.id;
      firsts.set(name, first);
      return [connector.id, first];
    }),
  );
}

function sharedName(connector: ConnectorSettings): string {
  if (connector.kind !== 'bridge') return `${connector.kind} ${connector.id}`;
  const { url, shareName } = connector.broker;
  return leaseNameOf(connector) ?? `${url} ${shareName}`;
}
