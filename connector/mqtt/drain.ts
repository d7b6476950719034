import { inTurns } from '../../src/lib/in-turns.ts';
import { waitUntil } from '../../src/lib/wait.ts';
import type { Acknowledger } from './inflight.ts';
import type { Reader } from './read.ts';
import type { Registry } from './sessions.ts';
import type { UnackedRoom } from './unacked.ts';

/** Time for the last acknowledgements to leave, at most: half of a short drain. */
const longestFlushMs = 1_000;

type DrainDeps = {
  registry: Registry;
  reader: Reader;
  room: UnackedRoom;
  acknowledger: Acknowledger;
};

/**
 * Reads no more, waits for what is under way to be stored and acknowledged, and closes, all within
 * `drainMs`. What was not stored in time is not acknowledged: what need not be stored twice is left to the store, which
 * stops later. The service goes away, not the devices: no will is published.
 */
export async function drain({ registry, reader, room, acknowledger }: DrainDeps, drainMs: number) {
  const flushMs = Math.min(longestFlushMs, drainMs / 2);
  reader.stop();
  acknowledger.readsEnd(registry.connections);
  await waitUntil(() => room.bytes() === 0, drainMs - flushMs);
  acknowledger.readsEnd(registry.connections);
  await inTurns(registry.connections, (connection) => {
    // Says good-bye.
    if (connection.v5) connection.close('shutdown');
    connection.ending ??= 'shutdown';
    acknowledger.withdraw(connection);
    connection.socket.end(() => connection.socket.destroy());
  });
  await waitUntil(() => registry.connections.size === 0, flushMs);
  await inTurns(registry.connections, (connection) => connection.close('shutdown'));
}
