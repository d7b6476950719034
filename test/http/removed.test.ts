import { connectAsync } from 'mqtt';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { detachDevices } from '../../src/devices/remove.ts';
import { createClearing } from '../../src/history/clear-removed.ts';
import { monotonicClock } from '../../src/lib/clock.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { databaseKinds, openTestDatabase } from '../support/database.ts';
import type { Database } from '../../src/db/database.ts';
import { fetchOperations, type Operation } from './document.ts';
import { buildWorld, exampleOf, send, type World } from './world.ts';

describe.each(databaseKinds)('what was removed, on %s', (kind) => {
  let service: TestService;
  let db: Database;
  let operations: Operation[];
  beforeAll(async () => {
    service = await testService({}, { kind });
    db = openTestDatabase(service.databaseUrl);
    operations = [...(await fetchOperations(service.url)).values()];
  });
  afterAll(async () => {
    await db?.close();
    await service?.close();
  });

  const call = (method: string, path: string, token: string | null, body?: unknown) =>
    send(service.url, { method, path, token, body });

  /** Prevents clearing while `work` runs, as if another process were slow at it. */
  const whileNothingIsCleared = (work: () => Promise<void>) =>
    db.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock(7206)');
      await work();
    });

  /** Clears as any process would. */
  const clear = () =>
    createClearing({
      db,
      monotonicClock,
      detach: (accountId, limit) => detachDevices(db, { publish: () => {} }, accountId, limit),
      onError: (error) => {
        throw error;
      },
    }).resume();

  /** The tables with a row that contains one of these words. */
  async function tablesThatSay(words: string[]): Promise<string[]> {
    const { rows } = await db.query<{ name: string }>(
      'select tablename as name from pg_tables where schemaname = current_schema order by 1',
    );
    const found: string[] = [];
    for (const { name } of rows) {
      const { rows: said } = await db.query<{ said: boolean }>(
        `select exists (select from ${name} t
                         where to_jsonb(t)::text like any(array(
                           select '%' || word || '%' from unnest($1::text[]) as w (word)))) as said`,
        [words],
      );
      if (said[0]?.said) found.push(name);
    }
    return found;
  }

  async function idsOf({ ids }: World) {
    const { rows } = await db.query<{ deviceId: number; accountId: number; accountUuid: string }>(
      `select d.id as "deviceId", a.id as "accountId", a.uuid as "accountUuid"
         from device d join account a on a.id = d.account_id where d.uuid = $1`,
      [ids.deviceAuthUuid],
    );
    if (!rows[0]) throw new Error('The world has no device.');
    return rows[0];
  }

  /** Tables with rows that refer to a device or an account by number. */
  async function rowsOf(column: string, id: number): Promise<string[]> {
    const { rows } = await db.query<{ name: string }>(
      `select table_name as name from information_schema.columns
        where table_schema = current_schema and column_name = $1
          and table_name in (select tablename from pg_tables where schemaname = current_schema)
        order by 1`,
      [column],
    );
    const found: string[] = [];
    for (const { name } of rows) {
      const { rowCount } = await db.query(`select from ${name} where ${column} = $1`, [id]);
      if ((rowCount ?? 0) > 0) found.push(name);
    }
    return found;
  }

  const reads = () =>
    operations.filter(
      ({ method, responses, secured }) =>
        method === 'GET' && secured && responses['200']?.content?.['application/json'],
    );
  const registration = (world: World) => ({
    protocol: 'mqtt',
    host: '127.0.0.1',
    port: service.mqttPort,
    deviceAuthUuid: world.ids.deviceAuthUuid,
    deviceAuthToken: world.deviceToken,
  });
  const logsIn = (world: World) =>
    connectAsync(`mqtt://127.0.0.1:${service.mqttPort}`, {
      username: world.ids.deviceAuthUuid,
      password: world.deviceToken,
      reconnectPeriod: 0,
    }).then(
      async (client) => {
        await client.endAsync();
        return true;
      },
      () => false,
    );

  test('a device disappears from all routes at once, and later from all tables', async () => {
    const world = await buildWorld(service.url);
    const { deviceAuthUuid, alarmId } = world.ids;
    const { deviceId } = await idsOf(world);
    const before = await call('GET', '/v2/alarms', world.token);
    expect(before.text).toContain(deviceAuthUuid);
    // These still tell its owner about it: what was done, and that it keeps trying to log in.
    const tells = ['get /v2/accounts/audit'];
    await whileNothingIsCleared(async () => {
      const answer = await call('DELETE', `/v2/devices/${deviceAuthUuid}`, world.token);
      expect(answer.status).toBe(200);
      // Not deleted yet.
      expect(await rowsOf('device_id', deviceId)).toContain('alarm');
      for (const operation of reads()) {
        const { status, text } = await send(service.url, exampleOf(operation, world));
        expect([operation.name, status < 500]).toEqual([operation.name, true]);
        // An error that there is no such device names it again.
        if (status === 200 && !tells.includes(operation.name))
          expect([operation.name, text.includes(deviceAuthUuid)]).toEqual([operation.name, false]);
      }
      for (const path of ['/v2/alarms', '/v2/alarms?state=open', '/v2/devices']) {
        const { text } = await call('GET', path, world.token);
        const { alarms, devices } = JSON.parse(text) as Record<string, unknown>;
        expect(alarms ?? devices).toEqual([]);
      }
      const acknowledged = await call('POST', `/v2/alarms/${alarmId}/acknowledge`, world.token);
      expect(acknowledged.status).toBe(404);
      const { text: usage } = await call('GET', '/v2/accounts/usage', world.token);
      expect(JSON.parse(usage)).toMatchObject({
        usage: expect.arrayContaining([{ quota: 'devices', limit: expect.any(Number), used: 0 }]),
      });
      expect(await logsIn(world)).toBe(false);
    });
    await clear();
    expect(await rowsOf('device_id', deviceId)).toEqual(['alarm_change']);
    const { rows } = await db.query('select body from alarm_change where device_id = $1', [
      deviceId,
    ]);
    expect(rows).toEqual([{ body: { change: 'removed', alarmId: Number(alarmId) } }]);
    // Rows kept for its owner, and for streams that resume.
    const kept = ['account_audit', 'alarm_change', 'backtest', 'refused_login', 'removed_uuid'];
    const said = await tablesThatSay([deviceAuthUuid]);
    expect(said.filter((name) => !kept.includes(name))).toEqual([]);
    const { rowCount } = await db.query('select from device where id = $1', [deviceId]);
    expect(rowCount).toBe(0);
  });

  test('an account disappears from all routes at once, its address is free, and later it is in no table', async () => {
    const world = await buildWorld(service.url);
    const { email, password, token, pair, ids } = world;
    const { deviceId, accountId, accountUuid } = await idsOf(world);
    const key = await call('POST', '/v2/accounts/keys', token, {
      name: 'x',
      scopes: ['data:read'],
    });
    const { key: keyText } = JSON.parse(key.text) as { key: string };
    const contacts = { webhooks: [{ url: 'https://example.com/a-hook-of-the-removed' }] };
    expect((await call('PUT', '/v2/accounts/contacts', token, contacts)).status).toBe(200);
    const apn = [{ token: 'a push token of the removed' }];
    expect((await call('PUT', '/v2/accounts', token, { name: 'Removed Person', apn })).status).toBe(
      200,
    );
    const device = await connectDevice(registration(world) as never);
    const closed = new Promise<void>((resolve) => device.client.once('close', () => resolve()));
    const persons = [email, 'a-hook-of-the-removed', 'push token of the removed', 'Removed Person'];
    expect((await tablesThatSay(persons)).length).toBeGreaterThan(1);
    await whileNothingIsCleared(async () => {
      const answer = await call('DELETE', '/v2/accounts', token);
      expect(answer.status).toBe(200);
      // Whatever names a person is deleted at once, and the rest not yet.
      expect(await tablesThatSay(persons)).toEqual([]);
      expect(await rowsOf('account_id', accountId)).toContain('device');
      await closed;
      const secured = operations.filter((operation) => operation.secured);
      for (const operation of secured)
        for (const opener of [token, pair.token, keyText]) {
          const request = exampleOf(operation, world);
          const path = request.path.replace(/ticket=[\w-]+/, 'ticket=none');
          const { status } = await send(service.url, { ...request, path, token: opener });
          expect([operation.name, status]).toEqual([operation.name, 401]);
        }
      const ticket = new URL(world.streamUrl, service.url);
      expect((await call('GET', ticket.pathname + ticket.search, null)).status).toBe(401);
      for (const path of ['/v2/accounts/login', '/v1/auth/login'])
        expect((await call('POST', path, null, { email, password })).status).toBe(401);
      expect(await logsIn(world)).toBe(false);
      const again = await call('POST', '/v2/accounts', null, { email, password });
      expect(again.status).toBe(200);
      const { accountAuthToken } = JSON.parse(again.text) as { accountAuthToken: string };
      const { text } = await call('GET', '/v2/devices', accountAuthToken);
      expect(JSON.parse(text)).toMatchObject({ devices: [] });
    });
    await clear();
    expect(await rowsOf('account_id', accountId)).toEqual([]);
    expect(await rowsOf('device_id', deviceId)).toEqual([]);
    expect(
      await tablesThatSay([accountUuid, ids.deviceAuthUuid, ids.purposeUuid, ids.pId, ids.keyId]),
    ).toEqual([]);
    const { rowCount } = await db.query('select from account where id = $1', [accountId]);
    expect(rowCount).toBe(0);
  });
});
