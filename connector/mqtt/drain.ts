import { setTimeout as sleep } from 'node:timers/promises';
import { inTurns } from '../../src/lib/in-turns.ts';
import type { Acknowledger } from './ack.ts';
import type { Reader } from './read.ts';
import type { Registry } from './registry.ts';
import type { UnackedRoom } from './unacked-room.ts';

/** Time for the last acknowledgements to leave, at most: half of a short drain. */
const longestFlushMs = 1_000;
const lookMs = 10;

type DrainDeps = {
  registry: Registry;
  reader: Reader;
  room: UnackedRoom;
  acknowledger: Acknowledger;
};

/**
 * Reads no more, waits for what is under way to be stored and acknowledged, and closes, all within
 * `drainMs`. What was not stored in time is not acknowledged. The service goes away, not the devices: no will is published.
 */
export async function drain({ registry, reader, room, acknowledger }: DrainDeps, drainMs: number) {
  const flushMs = Math.min(longestFlushMs, drainMs / 2);
  reader.stop();
  await until(() => room.bytes() === 0, drainMs - flushMs);
  await inTurns(registry.connections, (connection) => {
    if (connection.unacked.length > 0) {
      connection.ending ??= 'shutdown';
      acknowledger.giveUp(connection);
    }
    connection.ending ??= 'shutdown';
    connection.socket.end(() => connection.socket.destroy());
  });
  await until(() => registry.connections.size === 0, flushMs);
  await inTurns(registry.connections, (connection) => connection.close('shutdown'));
}

async function until(condition: () => boolean, timeoutMs: number): Promise<void> {
  const endMs = performance.now() + timeoutMs;
  while (!condition() && performance.now() < endMs) await sleep(lookMs);
}
