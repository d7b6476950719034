import { pino } from 'pino';
import { afterEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { startService } from '../../src/service.ts';
import type { ConnectorSettings } from '../../src/config/settings.ts';
import { startProxy } from '../faults/proxy.ts';
import { testDatabase } from '../support/database.ts';
import { hasMosquitto, startMosquitto } from '../support/mosquitto.ts';
import { bridgeTo } from './broker.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

/** A process that only bridges. Returns the reason in its `/readyz`; null if it is ready. */
async function startProcess(databaseUrl: string, connector: ConnectorSettings) {
  const role = { name: 'connector' as const, id: connector.id };
  const config = await loadConfig({
    DATABASE_URL: databaseUrl,
    SECRET: 'a secret that only this test knows, long enough',
    HEALTH_PORT: '0',
  });
  const settings = { ...config, role, connectors: [connector] };
  const service = await startService(settings, pino({ level: 'silent' }));
  ends.push(() => service.close().catch(() => undefined));
  const { port = 0 } = service.addresses.health ?? {};
  return async (): Promise<string | null> => {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
    const { detail } = (await answer.json()) as { detail?: string };
    return answer.ok ? null : (detail ?? '');
  };
}

describe.skipIf(!hasMosquitto)('a process that only bridges is ready', () => {
  async function open() {
    const database = await testDatabase();
    ends.push(database.drop);
    const broker = await startMosquitto();
    ends.push(broker.remove);
    return { database, broker };
  }

  it('while it is connected, if bridges share', async () => {
    const { database, broker } = await open();
    const readyz = await startProcess(database.url, bridgeTo(broker, 2));
    expect(await readyz()).toBeNull();
    await broker.kill();
    await expect.poll(readyz, { timeout: 60_000 }).toBe('Not ready: bridge.');
    await broker.restart();
    await expect.poll(readyz, { timeout: 60_000 }).toBeNull();
  });

  it('while it stands by and reaches the database, if one bridge is connected', async () => {
    const { database, broker } = await open();
    const connector = bridgeTo(broker, 2, null);
    const holder = await startProcess(database.url, connector);
    const proxy = await startProxy(Number(new URL(database.url).port));
    ends.push(proxy.close);
    const url = new URL(database.url);
    url.port = String(proxy.port);
    const standBy = await startProcess(url.href, connector);
    expect([await holder(), await standBy()]).toEqual([null, null]);
    proxy.cut();
    await expect.poll(standBy, { timeout: 60_000 }).toContain('Not ready: database');
    proxy.heal();
    await expect.poll(standBy, { timeout: 60_000 }).toBeNull();
    expect(await holder()).toBeNull();
  });
});
