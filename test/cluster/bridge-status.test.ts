import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectAsync } from 'mqtt';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { databaseKinds, testDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { hasMosquitto, startMosquitto } from '../support/mosquitto.ts';
import type { Mosquitto } from '../support/mosquitto.ts';
import { shareOf } from '../support/share.ts';
import { configuration, openApp } from '../journeys/app.ts';
import type { Registration } from '../journeys/app.ts';
import { testService } from '../journeys/service.ts';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import type { Role } from '../../src/config/config.ts';
import type { ConnectorSettings } from '../../src/config/settings.ts';
import { bridgeTo } from './broker.ts';

type Status = {
  status: string;
  degraded: string[];
  bridges?: {
    connectorName: string;
    state: string;
    sinceTs: number | null;
    lease: string | null;
  }[];
};

describe.skipIf(!hasMosquitto).each(shareOf(databaseKinds))(
  'bridges seen from outside, on %s',
  (kind) => {
    const dir = makeTemporaryDir();
    const ends: (() => Promise<unknown>)[] = [];
    let database: TestDatabase;
    let broker: Mosquitto;

    beforeAll(async () => {
      broker = await startMosquitto();
    });
    afterEach(async () => {
      for (const end of ends.splice(0).toReversed()) await end();
    });
    afterAll(async () => {
      await broker.remove();
      rmSync(dir, { recursive: true, force: true });
    });

    async function open(): Promise<void> {
      database = await testDatabase(kind);
      ends.push(database.drop);
    }

    /** Starts a part of an installation on the one database; `end` ends it early. */
    async function run(part: 'api' | number, connectors: ConnectorSettings[]) {
      const metricsPort = await findFreePort();
      const role: Role = part === 'api' ? { name: part } : { name: 'connector', id: part };
      const service = await testService(
        { DATABASE_URL: database.url, METRICS_PORT: String(metricsPort) },
        { kind, change: (config) => ({ ...config, role, connectors }) },
      );
      let isOpen = true;
      const end = async () => {
        if (isOpen) await service.close();
        isOpen = false;
      };
      ends.push(end);
      return { url: service.url, metricsUrl: `http://127.0.0.1:${metricsPort}/metrics`, end };
    }

    const readStatus = async (url: string) =>
      (await (await fetch(`${url}/v2/status`)).json()) as Status;
    const stateOf = async (url: string) => {
      const { status, degraded, bridges = [] } = await readStatus(url);
      return [status, degraded, bridges.map(({ state, lease }) => [state, lease])];
    };
    const readMetrics = async (url: string) =>
      (await (await fetch(url)).text()).split('\n').filter((line) => line.startsWith('bridge_'));

    it('are listed as lost by a process that runs none of them, until one is connected', async () => {
      await open();
      const connectors = [bridgeTo(broker, 2, null), bridgeTo(broker, 3)];
      const api = await run('api', connectors);
      expect(await stateOf(api.url)).toEqual([
        'degraded',
        ['bridge:broker-2', 'bridge:broker-3'],
        [
          ['absent', 'free'],
          ['absent', null],
        ],
      ]);
      const alone = await run(2, connectors);
      expect(await stateOf(api.url)).toEqual([
        'degraded',
        ['bridge:broker-3'],
        [
          ['connected', 'held'],
          ['absent', null],
        ],
      ]);
      await run(2, connectors);
      await run(3, connectors);
      const all = [
        'online',
        [],
        [
          ['connected', 'held'],
          ['connected', null],
        ],
      ];
      expect(await stateOf(api.url)).toEqual(all);
      await alone.end();
      await expect.poll(() => stateOf(api.url), { timeout: 60_000 }).toEqual(all);
    });

    it('with a password that the broker refuses are degraded, and the metrics say why', async () => {
      await open();
      const passwordFile = join(dir, 'empty');
      writeFileSync(passwordFile, '');
      const strict = await startMosquitto([
        'allow_anonymous false',
        `password_file ${passwordFile}`,
      ]);
      ends.push(strict.remove);
      const connectors = [bridgeTo(strict, 2)];
      const api = await run('api', connectors);
      const bridge = await run(2, connectors);
      const { degraded, bridges } = await readStatus(api.url);
      expect(degraded).toEqual(['bridge:broker-2']);
      // The status route is public, so it shows no address.
      expect(bridges).toEqual([
        {
          connectorName: 'broker-2',
          state: 'disconnected',
          sinceTs: expect.any(Number) as number,
          reason: 'refused-credentials',
          lease: null,
          holder: null,
          lastInTs: null,
          lastOutTs: null,
          refused: 0,
        },
      ]);
      const metrics = await readMetrics(bridge.metricsUrl);
      expect(metrics).toContain('bridge_connected{connector="broker-2"} 0');
      expect(metrics).toContain(
        'bridge_disconnected{connector="broker-2",reason="refused-credentials"} 1',
      );
      const { rows } = await database.db.query('select reason, connected from bridge_status');
      expect(rows).toEqual([{ reason: 'refused-credentials', connected: false }]);
    });

    it('count incoming, outgoing and refused messages', async () => {
      await open();
      const connectors = [bridgeTo(broker, 2, null)];
      const api = await run('api', connectors);
      const bridge = await run(2, connectors);
      const app = await openApp(api.url);
      const { deviceAuthUuid: uuid } = await app.call<Registration>(
        'POST',
        '/v2/devices',
        configuration,
      );
      const since = Math.floor(Date.now() / 1_000);
      const device = await connectAsync(broker.url, { clientId: uuid });
      ends.push(() => device.endAsync());
      await device.subscribeAsync(`devices/${uuid}/down/#`, { qos: 1 });
      const publish = (name: string, payload: object) =>
        device.publishAsync(`devices/${name}/up/measurements`, JSON.stringify(payload), { qos: 1 });
      await publish('00000000-0000-4000-8000-000000000000', { sId: '0x01', val: 1 });
      await device.publishAsync(`devices/${uuid}/up`, '{}', { qos: 1 });
      // Causes an error on down/errors, so that something goes out.
      await publish(uuid, { sId: '0x01', val: 999 });
      const read = async () => readMetrics(bridge.metricsUrl);
      const valueOf = async (name: string) =>
        Number((await read()).find((line) => line.startsWith(name))?.split(' ')[1] ?? 0);
      const label = '{connector="broker-2"}';
      await expect
        .poll(() => valueOf(`bridge_last_message_out_timestamp_seconds${label}`))
        .toBeGreaterThanOrEqual(since);
      expect(
        await valueOf(`bridge_last_message_in_timestamp_seconds${label}`),
      ).toBeGreaterThanOrEqual(since);
      expect(await valueOf(`bridge_state_since_timestamp_seconds${label}`)).toBeGreaterThan(0);
      const lines = await read();
      expect(lines).toContain(`bridge_connected${label} 1`);
      expect(lines).toContain(`bridge_lease_held${label} 1`);
      for (const reason of ['unknown-device', 'no-device-topic'])
        expect(lines).toContain(`bridge_refused_total{connector="broker-2",reason="${reason}"} 1`);
      expect(lines.filter((line) => line.startsWith('bridge_disconnected'))).toEqual([]);
      expect(lines.join('\n')).not.toContain(uuid);
    });
  },
);
