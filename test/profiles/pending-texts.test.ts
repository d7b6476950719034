import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDownlinks, forgetOldDisplays, keepDisplays } from '../../src/profiles/downlinks.ts';
import { type App, startApp } from '../devices/app.ts';

let app: App;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const setClock = (aheadHours: number) =>
  app.db.query(
    `create or replace function service_now() returns timestamptz language sql volatile parallel safe
     return clock_timestamp() + ${aheadHours} * interval '1 hour'`,
  );

test("texts for a display last a day by the service's clock, not by the database server's", async () => {
  const device = await app.device(await app.account());
  const { deviceId } = device;
  const downlinks = createDownlinks(app);
  const keep = (stId: number) => {
    const payload = { text: `text ${stId}`, ts: 1 };
    const message = { topic: 'display' as const, payload };
    return keepDisplays(app.db, [{ deviceId, puId: 1, stId, ...payload, message }]);
  };
  const listTexts = () => downlinks.subscribed(device, ['display']);
  await keep(1);
  expect(await listTexts()).toMatchObject([{ payload: { text: 'text 1' } }]);
  await setClock(25);
  expect(await listTexts()).toEqual([]);
  await keep(2);
  await forgetOldDisplays(app.db, Date.now() + 25 * 3_600_000);
  expect(await listTexts()).toMatchObject([{ payload: { text: 'text 2' } }]);
  await setClock(48);
  expect(await listTexts()).toHaveLength(1);
  await setClock(50);
  expect(await listTexts()).toEqual([]);
});
