import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Client } from 'aedes';
import type { Acknowledger } from './inflight.ts';
import type { Admitted } from './admission.ts';
import { Connection, findConnection, linkConnection } from './connection.ts';
import { giveUpSent } from './deliver.ts';
import { readFailure, type DeviceAedes } from './aedes.ts';
import type { HeldMessages } from './held-messages.ts';
import type { Observer } from '../options.ts';
import type { Reader } from './read.ts';
import type { Registry } from './sessions.ts';

export type ConnectionsDeps = {
  engine: DeviceAedes;
  /** Sets this process's connections apart from every other's. */
  runId: string;
  registry: Registry;
  reader: Reader;
  holding: Pick<HeldMessages, 'forgetConnection'>;
  acknowledger: Acknowledger;
  observe: Observer;
  now: () => number;
};

/** From a byte stream to a connection of the engine, and to its end. */
export function createConnections(deps: ConnectionsDeps) {
  const { engine, runId, registry, reader, holding, acknowledger, observe, now } = deps;
  let count = 0;

  engine.on('clientReady', (client) => {
    const connection = findConnection(client);
    if (!connection || connection.stage === 'closed') return;
    connection.stage = 'ready';
    connection.entry.letIn();
    connection.heardMs = now();
    observe.connected();
    connection.resume();
  });
  engine.on('clientError', (client, error) => blame(client, error));
  engine.on('connectionError', (client, error) => blame(client, error));

  function onClose(connection: Connection): void {
    const wasReady = connection.stage === 'ready';
    connection.stage = 'closed';
    connection.entry.letIn();
    registry.remove(connection);
    reader.forget(connection);
    holding.forgetConnection(connection);
    acknowledger.withdraw(connection);
    giveUpSent(connection);
    if (wasReady) observe.disconnected(connection.ending ?? 'peer');
    else if (connection.refusal) observe.refused(connection.refusal);
    else if (connection.ending === 'malformed') observe.refused('malformed');
  }

  return {
    open(socket: Duplex, entry: Admitted, request?: IncomingMessage): void {
      if (socket.destroyed) return;
      const connection = new Connection(`${runId}.${(count += 1)}`, socket, entry, now());
      connection.isWebSocket = request !== undefined;
      linkConnection(connection);
      registry.connections.add(connection);
      socket.once('close', () => onClose(connection));
      reader.attach(connection);
      connection.client = engine.handle(socket, request);
    },
  };
}

/** What aedes found wrong, for the count of endings. */
function blame(client: Client, error: Error): void {
  const connection = findConnection(client);
  if (!connection) return;
  const { refusal, ending } = readFailure(error);
  connection.refusal ??= refusal;
  connection.ending ??= ending;
}
