import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { startDeviceSide } from '../../src/assembly/device-side.ts';
import { createEdges, createReleases } from '../../src/assembly/releases.ts';
import { startShared } from '../../src/assembly/shared.ts';
import { loadConfig } from '../../src/config.ts';
import type { ConnectorSettings } from '../../src/settings.ts';
import { startProxy } from '../faults/proxy.ts';
import { testDatabase } from '../harness/database.ts';
import { hasMosquitto, startMosquitto } from '../harness/mosquitto.ts';
import { bridgeTo } from './broker.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** What a process that only bridges is made of. */
async function startSide(databaseUrl: string, connector: ConnectorSettings) {
  const config = await loadConfig({
    DATABASE_URL: databaseUrl,
    SECRET: 'a secret that only this test knows, long enough',
  });
  const [releases, edges] = [createReleases(), createEdges()];
  ends.push(async () => {
    await edges.close();
    await releases.releaseAll();
  });
  const role = { name: 'connector' as const, id: connector.id };
  const settings = { ...config, role, connectors: [connector] };
  return startDeviceSide(
    await startShared(settings, pino({ level: 'silent' }), { releases, edges }),
  );
}

describe.skipIf(!hasMosquitto)('a process that only bridges is ready', () => {
  async function open() {
    const database = await testDatabase();
    ends.push(database.drop);
    const broker = await startMosquitto();
    ends.push(broker.remove);
    return { database, broker };
  }

  it('while it is connected, where bridges share', async () => {
    const { database, broker } = await open();
    const side = await startSide(database.url, bridgeTo(broker, 2));
    expect(side.connector).toBeNull();
    expect(side.isBridgeReady()).toBe(true);
    await broker.kill();
    await expect.poll(side.isBridgeReady, { timeout: 20_000 }).toBe(false);
    await broker.restart();
    await expect.poll(side.isBridgeReady, { timeout: 20_000 }).toBe(true);
  }, 60_000);

  it('while it stands by and reaches the database, where one is connected', async () => {
    const { database, broker } = await open();
    const connector = bridgeTo(broker, 2, null);
    const holder = await startSide(database.url, connector);
    const proxy = await startProxy(Number(new URL(database.url).port));
    ends.push(proxy.close);
    const url = new URL(database.url);
    url.port = String(proxy.port);
    const standBy = await startSide(url.href, connector);
    expect([holder.isBridgeReady(), standBy.isBridgeReady()]).toEqual([true, true]);
    proxy.cut();
    await expect.poll(standBy.isBridgeReady, { timeout: 20_000 }).toBe(false);
    proxy.heal();
    await expect.poll(standBy.isBridgeReady, { timeout: 20_000 }).toBe(true);
    expect(holder.isBridgeReady()).toBe(true);
  }, 60_000);
});
