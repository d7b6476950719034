import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, purpose, startApp } from '../devices/app.ts';

let app: App;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

test('an installed profile makes its device due when its allowed silence ends, and never later than it already was', async () => {
  const token = await app.account();
  const [silent, other] = [await app.device(token), await app.device(token)];
  const dueIn = async (deviceId: number) => {
    const { rows } = await app.db.query<{ due_in: number }>(
      `select extract(epoch from due_at - service_now())::float8 * 1000 as due_in
         from device_due where device_id = $1`,
      [deviceId],
    );
    return rows[0]?.due_in ?? null;
  };
  const silence = (noneForMs: number) => ({
    puId: 1,
    initStId: 1,
    states: [
      { stId: 1, events: [{ evId: 1, causes: [{ sId: '0x01', threshold: { noneForMs } }] }] },
    ],
  });
  await app.install(token, [other.uuid], [purpose(1)]);
  expect(await dueIn(other.deviceId)).toBeNull();
  await app.install(token, [silent.uuid], [silence(3_600_000)]);
  expect(await dueIn(silent.deviceId)).toBeGreaterThan(3_000_000);
  await app.install(token, [silent.uuid], [silence(600_000)]);
  expect(await dueIn(silent.deviceId)).toBeLessThanOrEqual(600_000);
  await app.install(token, [silent.uuid], [silence(3_600_000)]);
  expect(await dueIn(silent.deviceId)).toBeLessThanOrEqual(600_000);
});
