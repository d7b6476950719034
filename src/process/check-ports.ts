import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { Config } from '../config/config.ts';
import { StartError } from '../start-error.ts';

type Address = { host: string; port: number };
/** The variables that say where something listens, and what they say. */
type Listener = { portName: string; hostName: string; at: Address };

/**
 * Tries every address before anything else is started: throws a StartError with a line for each that
 * cannot be listened on. Another program may still take one meanwhile; listening then fails with the same text.
 */
export async function checkPorts(config: Config): Promise<void> {
  const problems: string[] = [];
  const held: { listener: Listener; server: Server }[] = [];
  for (const listener of listListeners(config)) {
    const other = held.find(({ listener: { at } }) => isSame(at, listener.at))?.listener;
    const problem = other
      ? `${listener.portName}: port ${listener.at.port} is that of ${other.portName}: choose another one`
      : await tryToListen(listener, (server) => held.push({ listener, server }));
    if (problem !== null) problems.push(`${problem}.`);
  }
  await Promise.all(held.map(({ server }) => once(server.close(), 'close')));
  if (problems.length > 0) throw new StartError(problems);
}

/** What this process listens on. */
function listListeners(config: Config): Listener[] {
  const { role, connectors, httpListen, mqttListen, mqttsListen, webSocketListen } = config;
  const { metricsListen, healthListen } = config;
  const own = role.name === 'connector' ? connectors.find(({ id }) => id === role.id) : null;
  const isHttpOnly = own?.kind === 'http';
  const http = role.name === 'connector' && !isHttpOnly ? null : httpListen;
  const [mqtt, mqtts] =
    role.name === 'api' || isHttpOnly ? [null, null] : [mqttListen, mqttsListen];
  const all: [string, string, Address | null][] = [
    ['HTTP_PORT', 'HTTP_HOST', http],
    ['MQTT_PORT', 'MQTT_HOST', mqtt],
    ['MQTTS_PORT', 'MQTT_HOST', mqtts],
    ['MQTT_WS_PORT', 'MQTT_HOST', own?.kind === 'mqtt' ? webSocketListen : null],
    ['METRICS_PORT', 'METRICS_HOST', metricsListen],
    ['HEALTH_PORT', 'HEALTH_HOST', healthListen],
  ];
  return all.flatMap(([portName, hostName, at]) => (at ? [{ portName, hostName, at }] : []));
}

function isSame(a: Address, b: Address): boolean {
  return a.port !== 0 && a.port === b.port && a.host === b.host;
}

async function tryToListen(
  { portName, hostName, at }: Listener,
  onListening: (server: Server) => void,
): Promise<string | null> {
  const server = createServer();
  try {
    await once(server.listen({ host: at.host, port: at.port }), 'listening');
    onListening(server);
    return null;
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    const where = `port ${at.port} of ${at.host}`;
    if (code === 'EADDRINUSE')
      return `${portName}: ${where} is taken: stop what uses it, or choose another one (0 takes any free one)`;
    if (code === 'EACCES')
      return `${portName}: this user may not listen on ${where}: choose one from 1024 on, or allow it`;
    if (['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN', 'EINVAL'].includes(code))
      return `${hostName}: this machine has no address ${at.host}: name one that it has, or 0.0.0.0 for all`;
    return `${portName}: ${where} cannot be had (${message})`;
  }
}
