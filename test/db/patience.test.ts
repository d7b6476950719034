import { afterAll, beforeAll, expect, it } from 'vitest';
import { createPatience, type Database, withTimeout } from '../../src/db/database.ts';
import { shareOut } from '../../src/db/shares.ts';
import { startProxy } from '../faults/proxy.ts';
import type { Proxy } from '../faults/proxy.ts';
import { openTestDatabase, testDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';

const patienceMs = 100;
let database: TestDatabase;
let proxy: Proxy;
let opened: Database[];
let patient: Database;

beforeAll(async () => {
  database = await testDatabase();
  const url = new URL(database.url);
  proxy = await startProxy(Number(url.port));
  url.port = String(proxy.port);
  const open = (maxConnections: number) => openTestDatabase(url.href, { maxConnections });
  const [pinger, db] = [open(1), open(2)];
  opened = [pinger, db];
  const ping = () => withTimeout(pinger.query('select 1'), 2_000);
  const wait = createPatience({ patienceMs, ping });
  patient = shareOut(db, { connections: 2, wait, placeTimeoutMs: 20_000 }).db;
});
afterAll(async () => {
  await proxy.close();
  await Promise.all(opened.map((each) => each.close()));
  await database.drop();
});

it('lets a statement take its time while the server answers others', async () => {
  const { rows } = await patient.query<{ done: number }>(
    `select 1 as done from pg_sleep(${(patienceMs * 4) / 1_000})`,
  );
  expect(rows).toEqual([{ done: 1 }]);
});

it('reports "unavailable" if the server has stopped answering, long before the statement times out', async () => {
  await patient.query('select 1');
  proxy.stall();
  const refused = { code: 'unavailable' };
  await expect(patient.query('select 1')).rejects.toMatchObject(refused);
  await expect(patient.transaction((tx) => tx.query('select 1'))).rejects.toMatchObject(refused);
  proxy.heal();
  await expect
    .poll(() =>
      patient.query('select 1').then(
        () => 'back',
        () => 'away',
      ),
    )
    .toBe('back');
});
