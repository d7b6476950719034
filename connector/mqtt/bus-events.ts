import { nextTurn } from '../../src/lib/in-turns.ts';
import { inTurns } from '../../src/lib/in-turns.ts';
import type { Connection } from './connection.ts';
import { isUnavailableError } from '../failure.ts';
import type { Log } from '../options.ts';
import type { ConnectorPorts } from '../ports.ts';
import type { Registry } from './sessions.ts';

export type BusEventDeps = {
  ports: ConnectorPorts;
  registry: Registry;
  /** Access of this device (without one: of any) changed while it may be about to be let in. */
  doubt: (uuid?: string) => void;
  log: Log;
};

const recheckIntervalMs = 500;
/** Connections that are closed before others have their turn. */
const closedInTurn = 100;

/** What other parts of the installation tell this connector. Returns what ends the listening. */
export function listenToBus({ ports, registry, doubt, log }: BusEventDeps): () => void {
  /** Connections whose access could not be looked at yet. */
  const unsure = new Set<Connection>();
  let isChecking = false;

  async function recheck(): Promise<void> {
    if (isChecking) return;
    isChecking = true;
    for (const connection of unsure) {
      unsure.delete(connection);
      try {
        await endLostAccess([connection], ports);
      } catch (error) {
        unsure.add(connection);
        if (isUnavailableError(error)) break;
        log.error(
          { event: 'access.unchecked', err: error },
          'Whether devices may stay connected could not be checked; it is tried again.',
        );
        break;
      }
    }
    isChecking = false;
  }

  function suspect(connections: Iterable<Connection>): void {
    for (const connection of connections) if (connection.device) unsure.add(connection);
    void recheck();
  }

  /** Without a look at each device: there may be ten thousand. */
  async function shutOut(accountId: number): Promise<void> {
    doubt();
    let closed = 0;
    for (const connection of registry.connections) {
      if (connection.device?.identity.accountId !== accountId) continue;
      connection.close('access-ended');
      closed += 1;
      if (closed % closedInTurn === 0) await nextTurn();
    }
  }

  const timer = setInterval(() => void recheck(), recheckIntervalMs);
  const { bus } = ports;
  const ends = [
    ports.onAccountDisabled((accountId) => void shutOut(accountId)),
    bus.subscribe('device', ({ uuid, push }) => {
      if (!push) return;
      for (const connection of registry.listConnectionsOf(uuid)) connection.downlinks?.due(push);
    }),
    bus.subscribe('down', ({ uuid, message }) => {
      for (const connection of registry.listConnectionsOf(uuid))
        connection.downlinks?.push(message);
    }),
    bus.subscribe('access', ({ uuid }) => {
      doubt(uuid);
      suspect(registry.listConnectionsOf(uuid));
    }),
    bus.subscribe('session', ({ uuid, clientId, connection }) =>
      registry.closeSessionsBut(uuid, clientId, connection),
    ),
    bus.subscribe('resync', () => {
      suspect(registry.connections);
      void inTurns(registry.connections, ({ downlinks }) => {
        downlinks?.due('profile');
        downlinks?.due('configuration');
        downlinks?.due('display');
      }).catch((error: unknown) =>
        log.error(
          { event: 'downlink.unread', err: error },
          'What is due for the connected devices could not be read.',
        ),
      );
    }),
  ];
  return () => {
    clearInterval(timer);
    for (const end of ends) end();
  };
}

/** Ends live connections whose device, token or account is gone. `access` costs no query here. */
async function endLostAccess(
  connections: Connection[],
  ports: Pick<ConnectorPorts, 'isStillAllowed'>,
): Promise<void> {
  for (const connection of connections) {
    const { device, credentials } = connection;
    if (!device || !credentials) continue;
    if (!(await ports.isStillAllowed(device.identity, credentials)))
      connection.close('access-ended');
  }
}
