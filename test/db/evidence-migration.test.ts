import { afterAll, beforeAll, expect, it } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import { emptyDatabase, type TestDatabase } from '../support/database.ts';
import { runOn } from '../support/template.ts';
import { insertDevice } from '../ingest/harness.ts';
import { migrateTo, silent } from './earlier.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await emptyDatabase();
  await migrateTo(database.url, 6);
});
afterAll(() => database.drop());

it("keeps a device's evidence, and not what its senses measured last: the history has that", async () => {
  const { db, url } = database;
  const [judged, plain] = [await insertDevice(db), await insertDevice(db)];
  const evidence = {
    v: 1,
    puId: 7,
    stId: 1,
    local: { '1/3': { causes: [{ window: '01', agreed: { val: 5e-324, ts: 10 } }] } },
    global: { '9/1': { causes: [null], rung: true } },
  };
  const earlier = { ...evidence, seen: { '0x01': { ts: 10, vals: [5e-324] } } };
  await runOn(url, (client) =>
    client.query('update device_state set runtime = $2 where device_id = $1', [
      judged.deviceId,
      JSON.stringify(earlier),
    ]),
  );
  await migrate(url, { log: silent });
  const { rows } = await db.query('select device_id, runtime from device_state order by 1');
  expect(rows).toEqual([
    { device_id: judged.deviceId, runtime: evidence },
    { device_id: plain.deviceId, runtime: null },
  ]);
});
