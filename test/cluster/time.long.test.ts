import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, registerAccount } from '../../bench/api.ts';
import type { Database } from '../../src/db/database.ts';
import type { ServiceProcess } from '../faults/service-process.ts';
import { configuration, type Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { openTestDatabase } from '../support/database.ts';
import { hasRedis } from '../support/redis.ts';
import { startInstallation, type Installation } from './world.ts';

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;

/** Ticks of devices, on processes of their own. The service's time is the database's, and is moved there. */
describe.skipIf(!hasRedis)('an API process and two connectors', () => {
  let installation: Installation;
  let api: ServiceProcess;
  let one: ServiceProcess;
  let two: ServiceProcess;
  let db: Database;
  let token: string;
  let movedMs = 0;

  beforeAll(async () => {
    const connectors = [1, 2].map((id) => ({
      kind: 'mqtt' as const,
      id,
      name: `connector-${id}`,
      protocol: 'mqtt' as const,
      host: '127.0.0.1',
      port: 1_883,
    }));
    installation = await startInstallation({ apis: 1, connectors });
    api = installation.apis[0] as ServiceProcess;
    [one, two] = installation.connectors as [ServiceProcess, ServiceProcess];
    db = openTestDatabase(installation.databaseUrl);
    ({ token } = await registerAccount(api.url));
  });
  afterAll(async () => {
    await db?.close();
    await installation?.close();
  });

  async function moveTime(byMs: number): Promise<void> {
    movedMs += byMs;
    await db.query(`create or replace function service_now() returns timestamptz
      language sql volatile as $$ select clock_timestamp() + interval '${movedMs} ms' $$`);
  }

  const event = (evId: number, threshold: object, thresholds: object = {}) => ({
    evId,
    eventLog: true,
    causes: [{ sId: '0x01', threshold, thresholds }],
  });

  /** A device in a state with these events that sent one value to this connector. */
  async function deviceAt(connector: ServiceProcess, events: object[], val = 20): Promise<string> {
    const registration = await call<Registration>(api.url, 'POST', '/v2/devices', {
      token,
      body: configuration,
    });
    const uuid = registration.deviceAuthUuid;
    const purposes = [{ puId: 1, initStId: 1, states: [{ stId: 1, events }] }];
    await call(api.url, 'POST', '/v2/devices/profile', {
      token,
      body: { deviceAuthUuids: [uuid], purposes },
    });
    const device = await connectDevice({
      ...registration,
      host: '127.0.0.1',
      port: connector.mqttPort,
    });
    await device.publish('up/measurements', { sId: '0x01', val });
    const at = connector === one ? 1 : 2;
    await expect.poll(() => connectorOf(uuid)).toBe(at);
    return uuid;
  }

  const ask = async <T extends object>(sql: string, uuid: string) =>
    (await db.query<T>(`${sql} where device_id = (select id from device where uuid = $1)`, [uuid]))
      .rows[0];
  const connectorOf = async (uuid: string) =>
    (await ask<{ connector_id: number }>('select connector_id from presence', uuid))?.connector_id;
  /** In how many ms it is due; null if nothing is. */
  const dueIn = async (uuid: string) =>
    (
      await ask<{ due_in: number }>(
        `select extract(epoch from due_at - service_now())::float8 * 1000 as due_in from device_due`,
        uuid,
      )
    )?.due_in ?? null;
  const firings = async (uuid: string) => {
    const { rows } = await db.query<{ ts: number; ev_id: number }>(
      `select ts, (body->'cause'->'engine'->>'evId')::integer as ev_id
         from event
        where type = 'sense' and device_id = (select id from device where uuid = $1) order by ts`,
      [uuid],
    );
    return rows;
  };
  const gapsOf = async (connectorId: number) => {
    const { rowCount } = await db.query('select from listening_gap where connector_id = $1', [
      connectorId,
    ]);
    return rowCount ?? 0;
  };

  it('report a silence; while one connector is away, none begins or ends there', async () => {
    const silence = event(1, { noneForMs: 20 * second });
    const there = await deviceAt(one, [silence]);
    await one.kill();
    const here = await deviceAt(two, [silence]);
    await expect.poll(() => firings(here), { timeout: minute }).toHaveLength(1);
    // The other process looked, and found that nobody had listened.
    await expect.poll(() => dueIn(there), { timeout: minute }).toBeGreaterThan(0);
    expect(await firings(there)).toEqual([]);
    await one.start();
    await expect.poll(() => gapsOf(1)).toBe(1);
    await expect.poll(() => firings(there), { timeout: 2 * minute }).toHaveLength(1);
    expect(await gapsOf(2)).toBe(0);
  });

  it('treat a clock that is set forward by an hour as a gap, and not as silence', async () => {
    const quiet = await deviceAt(two, [event(1, { noneForMs: 30 * minute })]);
    expect(await dueIn(quiet)).toBeGreaterThan(29 * minute);
    const before = await gapsOf(2);
    await moveTime(hour);
    await expect.poll(() => gapsOf(2)).toBe(before + 1);
    expect(await dueIn(quiet)).toBeLessThan(0);
    await expect.poll(() => dueIn(quiet), { timeout: minute }).toBeGreaterThan(minute);
    expect(await firings(quiet)).toEqual([]);
  });

  it('run what fell due in a night without them, in order, once they have listened for five minutes', async () => {
    const warm = { isGt: 8 };
    const events = [event(2, { forMs: 2 * minute }, warm), event(1, { forMs: minute }, warm)];
    const device = await deviceAt(two, events, 12);
    await Promise.all([one.kill(), two.kill()]);
    await moveTime(8 * hour);
    await two.start();
    await expect.poll(() => dueIn(device)).toBeGreaterThan(minute);
    expect(await firings(device)).toEqual([]);
    await two.kill();
    // As if the gap had ended six minutes ago.
    await db.query(`update listening_gap set to_at = to_at - interval '6 minutes'`);
    await db.query(`update device_due set due_at = due_at - interval '6 minutes'`);
    await db.query('update device_state set version = version + 1');
    await db.query('update listening set heard_at = service_now()');
    await two.start();
    await expect.poll(() => firings(device), { timeout: minute }).toHaveLength(2);
    const [first, last] = await firings(device);
    expect([first?.ev_id, last?.ev_id]).toEqual([1, 2]);
    expect((last?.ts ?? 0) - (first?.ts ?? 0)).toBe(minute);
  });
});
