import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import type { ServiceProcess } from '../faults/service-process.ts';
import { findProgram } from '../support/program.ts';
import { startServer } from '../support/server.ts';

export const haproxyProgram = findProgram('haproxy');
export const shippedConfig = new URL('../../config/haproxy.cfg', import.meta.url).pathname;

type KnownServer = {
  status: string;
  sessions: number;
  /** Connections and requests that had to be retried. */
  retries: number;
};

export type ShippedHaproxy = {
  url: string;
  mqttPort: number;
  /** The status of its servers, by name. */
  servers(): Promise<Record<string, KnownServer>>;
  close(): Promise<void>;
};

type Processes = {
  apis: ServiceProcess[];
  connectors: ServiceProcess[];
  /** Connectors of kind http. The shipped file has three of MQTT before them. */
  uplinks?: ServiceProcess[];
};

/** HAProxy with config/haproxy.cfg, except for its addresses and limits. */
export async function startShippedHaproxy(
  dir: string,
  { apis, connectors, uplinks = [] }: Processes,
): Promise<ShippedHaproxy> {
  const [httpPort, mqttPort] = [await findFreePort(), await findFreePort()];
  const servers = new Map([
    ...apis.map(({ url }, index) => [`api-${index + 1}`, new URL(url).host] as const),
    ...connectors.map(
      ({ mqttPort: port, healthPort }, index) =>
        [`connector-${index + 1}`, `127.0.0.1:${port} port ${healthPort}`] as const,
    ),
    ...connectors.map(
      ({ webSocketPort: port, healthPort }, index) =>
        [`ws-${index + 1}`, `127.0.0.1:${port} port ${healthPort}`] as const,
    ),
    ...uplinks.map(
      ({ url, healthPort }, index) =>
        [`connector-${index + 4}`, `${new URL(url).host} port ${healthPort}`] as const,
    ),
  ]);
  const file = join(dir, 'haproxy.cfg');
  writeFileSync(file, place(readFileSync(shippedConfig, 'utf8'), { httpPort, mqttPort, servers }));
  const socket = join(dir, 'haproxy.sock');
  const extra = join(dir, 'haproxy-stats.cfg');
  writeFileSync(extra, `global\n  stats socket ${socket}\n`);
  const server = await startServer(haproxyProgram ?? '', ['-f', file, '-f', extra], httpPort);
  return {
    url: `http://127.0.0.1:${httpPort}`,
    mqttPort,
    servers: () => readServers(socket),
    close: () => server.kill(),
  };
}

type Places = { httpPort: number; mqttPort: number; servers: Map<string, string> };

/** Throws if the file no longer contains what must be replaced. */
function place(config: string, { httpPort, mqttPort, servers }: Places): string {
  const replace = (from: string, to: string) => {
    if (!config.includes(from)) throw new Error(`config/haproxy.cfg: no "${from.trim()}".`);
    config = config.replaceAll(from, to);
  };
  replace('bind :8080\n', `bind 127.0.0.1:${httpPort}\n`);
  replace('bind :1883\n', `bind 127.0.0.1:${mqttPort}\n`);
  replace('maxconn 200000\n', 'maxconn 1000\n');
  const found = new Set<string>();
  config = config.replaceAll(/^ *server (\S+) [\w-]+:\d+\n/gm, (_line, name: string) => {
    const address = servers.get(name);
    found.add(name);
    return address === undefined ? '' : `  server ${name} ${address}\n`;
  });
  for (const name of servers.keys()) {
    if (!found.has(name)) throw new Error(`config/haproxy.cfg: no server ${name}.`);
  }
  return config;
}

async function readServers(socket: string) {
  const answer = await text(connect(socket).end('show stat\n'));
  const [head = '', ...rows] = answer.replace('# ', '').trim().split('\n');
  const columns = head.split(',');
  const servers: Record<string, KnownServer> = {};
  for (const row of rows) {
    const values = row.split(',');
    const value = (name: string) => values[columns.indexOf(name)] ?? '';
    if (value('svname').endsWith('END')) continue;
    servers[value('svname')] = {
      status: value('status'),
      sessions: Number(value('stot')),
      retries: Number(value('wretr')) + Number(value('wredis')),
    };
  }
  return servers;
}
