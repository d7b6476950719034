import { setTimeout as delay } from 'node:timers/promises';
import { openDatabase } from '../../src/db/database.ts';
import { registerAccount, registerDevices } from '../api.ts';
import { createFleet } from '../client/fleet.ts';
import { schemaOf } from '../database.ts';
import { specsOf } from '../fleets.ts';
import { read, tsOf, type Bulk } from './of-bulk.ts';
import { importLines } from './time-imports.ts';

const others = 500;
const ratePerSecond = 1_000;
const quietMs = 10_000;
const leastMs = 10_000;

type Heavy = { name: string; once: () => Promise<unknown> };

/** How other accounts' devices notice an account that exports and imports: milliseconds until they are acknowledged. */
export async function timeBeside(
  bulk: Bulk,
  databaseUrl: string,
  tell: (line: string) => void,
): Promise<void> {
  const { service } = bulk;
  const { token } = await registerAccount(service.baseUrl);
  const devices = await registerDevices(service.baseUrl, token, others);
  const fleet = createFleet({
    host: '127.0.0.1',
    port: service.mqttPort,
    devices: specsOf(devices),
    ratePerSecond,
    payload: (_device, seq) => JSON.stringify({ sId: '0x01', val: 20, ts: Date.now() + (seq % 2) }),
  });
  const write = (name: string) => {
    const at = (percentile: number) =>
      (fleet.latency.percentile(percentile) / 1_000).toFixed(1).padStart(8);
    tell(`${name.padEnd(62)}${at(50)}${at(99)}${at(100)}`);
  };
  try {
    await fleet.connect();
    fleet.start();
    await delay(2_000);
    tell(
      `\n${`milliseconds, ${ratePerSecond} messages a second beside`.padEnd(62)}     p50     p99     max`,
    );
    fleet.latency.reset();
    await delay(quietMs);
    write('nothing');
    for (const { name, once } of heavyOf(bulk)) {
      fleet.latency.reset();
      const untilMs = performance.now() + leastMs;
      let times = 0;
      for (; times === 0 || performance.now() < untilMs; times += 1) await once();
      write(`${name} (${times})`);
    }
    const held = await longestHold(bulk, databaseUrl);
    tell(
      `${'an import holds a device at most'.padEnd(62)}${''.padEnd(16)}${held.toFixed(1).padStart(8)}`,
    );
  } finally {
    await fleet.stop(5_000);
    await fleet.close();
  }
}

function heavyOf(bulk: Bulk): Heavy[] {
  const start = tsOf(bulk.rows, 0, 0);
  const end = tsOf(bulk.rows, bulk.rows, 0);
  const query = `devices=${bulk.devices.map(({ uuid }) => uuid).join(',')}&start=${start}&end=${end}`;
  const path = `/v2/measurements?${query}`;
  return [
    { name: 'an export as JSON', once: () => read(bulk, path) },
    {
      name: 'an export as JSON with gzip',
      once: () => read(bulk, path, 'application/json', 'gzip'),
    },
    { name: 'an export as CSV', once: () => read(bulk, path, 'text/csv') },
    { name: 'an import of what is there already', once: () => importLines(bulk, 0) },
    { name: 'an import', once: () => importLines(bulk, 1 + Math.floor(Math.random() * 1_000_000)) },
  ];
}

/** The longest time for which another transaction waits for the row of a device during an import, ms. */
async function longestHold(bulk: Bulk, connectionString: string): Promise<number> {
  const probe = openDatabase({
    connectTimeoutMs: 5_000,
    onIdleError: () => undefined,
    connectionString,
    schema: await schemaOf(connectionString),
    maxConnections: 1,
    statementTimeoutMs: 10_000,
  });
  let longestMs = 0;
  let isOver = false;
  const importing = importLines(bulk, 2_000_003).finally(() => (isOver = true));
  try {
    while (!isOver) {
      const sinceMs = performance.now();
      await probe.query(
        'select from device_state where device_id = (select min(device_id) from device_state) for no key update',
      );
      longestMs = Math.max(longestMs, performance.now() - sinceMs);
      await delay(1);
    }
    await importing;
    return longestMs;
  } finally {
    await probe.close();
  }
}
