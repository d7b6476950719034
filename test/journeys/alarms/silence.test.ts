import { afterAll, beforeAll, expect, it } from 'vitest';
import { runOn, schema } from '../../support/template.ts';
import { purposeOf, warm } from './purposes.ts';
import { startTimeline, type Timeline } from './timeline.ts';

let timeline: Timeline;
beforeAll(async () => void (timeline = await startTimeline()));
afterAll(() => timeline?.close());

/** These tests set no clock but the last, because a leap counts as a time in which nobody listened. */
const silent = (evId: number, sId: string, noneForMs: number) => ({
  evId,
  name: `nothing of ${sId}`,
  eventLog: true,
  actions: { cloud: { sendPush: true } },
  causes: [{ sId, threshold: { noneForMs } }],
});

it('two senses silent, one reports once and falls silent again: two rings of it, one of the other', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice(
    [purposeOf([silent(1, '0x01', 2_000), silent(2, '0x02', 2_000)])],
    ['0x01', '0x02'],
  );
  const rings = (evId: number) => account.told().filter(({ data }) => data.evId === evId).length;
  const open = async () => (await account.alarms('?state=open')).length;
  await sensor.measure({ val: 1 }, { sId: '0x02', val: 1 });
  await account.toldOf('alarm.opened', 2);
  // On a slow machine both may have been silent before they first reported, too.
  await expect.poll(open, { timeout: 60_000 }).toBe(2);
  await expect.poll(() => Math.min(rings(1), rings(2))).toBeGreaterThan(0);
  const before = [rings(1), rings(2)];
  await sensor.measure({ val: 1 });
  await expect.poll(() => rings(1)).toBe((before[0] ?? 0) + 1);
  expect(rings(2)).toBe(before[1]);
});

it('a device that never reports is noticed, counted from its installation', async () => {
  const account = await timeline.openAccount();
  await account.addDevice([purposeOf([silent(1, '0x01', 2_000)])]);
  const [opened] = await account.toldOf('alarm.opened', 1);
  expect(opened?.data.evId).toBe(1);
});

it('a warm period rings once it lasts long enough, without another value; one that ended before does not', async () => {
  const account = await timeline.openAccount();
  const purposes = [purposeOf([warm(1, { threshold: { forMs: 3_000 } })])];
  const [warmed, cooled] = [await account.addDevice(purposes), await account.addDevice(purposes)];
  await cooled.measure({ val: 9 }, { val: 5 });
  await warmed.measure({ val: 9 });
  expect(await account.alarms()).toEqual([]);
  const [opened] = await account.toldOf('alarm.opened', 1);
  expect(opened?.data).toMatchObject({ evId: 1, deviceAuthUuid: warmed.uuid });
  expect(await cooled.events()).toEqual([]);
  expect(account.told()).toHaveLength(1);
});

it('a silence that was none by the measurements says so, whether the late value ends it or comes after the end', async () => {
  const account = await timeline.openAccount();
  const { url } = account.hooks;
  await account.app.call('PUT', '/v2/accounts/contacts', { webhooks: [{ url, whenOver: true }] });
  const purposes = [purposeOf([silent(1, '0x01', 2_000)])];
  const add = () => account.addDevice(purposes);
  const [ending, after, real, slow] = [await add(), await add(), await add(), await add()];
  // Each falls silent again and again.
  const filled = async ({ uuid }: { uuid: string }) =>
    (await account.alarms(`?device=${uuid}`)).flatMap(({ filledTs }) => filledTs ?? []);
  const isOpen = async ({ uuid }: { uuid: string }) =>
    (await account.alarms(`?state=open&device=${uuid}`)).length > 0;
  const start = timeline.now();
  // The clock of one is an hour slow: its silence begins by the service's clock, and what fills it is dated by the
  // device's.
  const slowTs = start - 3_600_000;
  for (const sensor of [ending, after, real]) await sensor.measure({ val: 1, ts: start });
  await slow.measure({ val: 1, ts: slowTs });
  for (const sensor of [ending, after, real, slow])
    await expect.poll(() => isOpen(sensor), { timeout: 30_000 }).toBe(true);
  await ending.measure({ val: 2, ts: start + 500 });
  expect(await filled(ending)).toEqual([start + 500]);
  const bodies = () => account.told().map(({ data }) => String(data['body']));
  await expect
    .poll(bodies)
    .toContainEqual(
      expect.stringMatching(/Values were measured but came late, the first of .+\.$/),
    );
  for (const sensor of [after, real]) await sensor.measure({ val: 2 });
  expect([await filled(after), await filled(real)]).toEqual([[], []]);
  await after.measure({ val: 2, ts: start + 700 }, { val: 2, ts: start + 600 });
  await expect.poll(() => filled(after)).toEqual([start + 600]);
  await slow.measure({ val: 2, ts: slowTs + 4_000 });
  await slow.measure({ val: 2, ts: slowTs + 700 });
  await expect.poll(() => filled(slow)).toContain(slowTs + 700);
  await real.measure({ val: 2, ts: start + 2_000 });
  await expect.poll(() => isKept()).toBe(true);
  expect(await filled(real)).toEqual([]);
});

/** Whether the timer has nothing left to look for in alarms that closed. */
const isKept = () =>
  runOn(timeline.service.databaseUrl, async (client) => {
    const due = `select from ${schema}.alarm where extreme_due_at is not null`;
    return (await client.query(due)).rowCount === 0;
  });

// After the others, because it sets the clock.
it('a silent sense whose first notification failed notifies again', async () => {
  let isRefusing = true;
  const account = await timeline.openAccount(() => ({ status: isRefusing ? 410 : 204 }));
  await account.addDevice([purposeOf([silent(1, '0x01', 1_000)])]);
  const told = async () => (await account.alarms())[0]?.told;
  await expect.poll(told, { timeout: 60_000 }).toBe('withdrawn');
  isRefusing = false;
  timeline.advance(61_000);
  await expect.poll(told, { timeout: 60_000 }).toBe('told');
});
