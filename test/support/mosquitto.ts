import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import { makeTemporaryDir } from './cluster.ts';
import { findProgram } from './program.ts';
import { startServer, type Server } from './server.ts';

const program = findProgram('mosquitto');

/** `describe.skipIf(!hasMosquitto)`: whether this machine has the broker and its clients. */
export const hasMosquitto = program !== null && findProgram('mosquitto_pub') !== null;

export type Mosquitto = Server & { url: string; remove(): Promise<void> };

const given = process.env['TEST_MQTT_URL'];

/** `describe.skipIf(!canOpenBroker)`: whether there is a broker for tests that only use it. */
export const canOpenBroker = given !== undefined || hasMosquitto;

/** A broker that accepts anybody, for a test that neither stops nor configures it. */
export type OpenBroker = { url: string; port: number; close(): Promise<void> };

/** The broker that TEST_MQTT_URL names (`mqtt://127.0.0.1:port`), or one of the test's own. */
export async function openBroker(): Promise<OpenBroker> {
  if (given !== undefined)
    return { url: given, port: Number(new URL(given).port), close: async () => undefined };
  const { url, port, remove } = await startMosquitto();
  return { url, port, close: remove };
}

/**
 * A Mosquitto broker of the test's own. `config`: lines of mosquitto.conf beside the listener. Anybody may connect
 * unless they say otherwise.
 */
export async function startMosquitto(
  config: string[] = ['allow_anonymous true'],
): Promise<Mosquitto> {
  if (program === null) throw new Error('No mosquitto here.');
  const port = await findFreePort();
  const dir = makeTemporaryDir();
  const file = join(dir, 'mosquitto.conf');
  // Run as root, Mosquitto switches to the user `mosquitto`, which a container may not have.
  const user = process.getuid?.() === 0 ? ['user root'] : [];
  writeFileSync(file, [`listener ${port} 127.0.0.1`, ...user, ...config, ''].join('\n'));
  const server = await startServer(program, ['-c', file], port);
  return {
    ...server,
    url: `mqtt://127.0.0.1:${port}`,
    async remove() {
      await server.kill();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
