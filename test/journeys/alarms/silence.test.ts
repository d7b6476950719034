import { afterAll, beforeAll, expect, it } from 'vitest';
import { purposeOf, warm } from './purposes.ts';
import { hourMs, minuteMs, startTimeline, type Timeline } from './timeline.ts';

let timeline: Timeline;
beforeAll(async () => void (timeline = await startTimeline()));
afterAll(() => timeline?.close());

const silent = (evId: number, sId: string) => ({
  evId,
  name: `nothing of ${sId}`,
  eventLog: true,
  actions: { cloud: { sendPush: true } },
  causes: [{ sId, threshold: { noneForMs: hourMs } }],
});

/** By steps that are no gap: a service is told that it was away where a clock jumps. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10_000) {
    timeline.advance(10_000);
    if (passed % minuteMs === 0) await new Promise((resolve) => setImmediate(resolve));
  }
}

it('two senses silent, one speaks once and falls silent again: two rings of it, one of the other', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice(
    [purposeOf([silent(1, '0x01'), silent(2, '0x02')])],
    ['0x01', '0x02'],
  );
  await sensor.measure({ val: 1 }, { sId: '0x02', val: 1 });
  await pass(hourMs + 5 * minuteMs);
  await account.toldOf('alarm.opened', 2);
  await sensor.measure({ val: 1 });
  await pass(hourMs + 5 * minuteMs);
  await account.toldOf('alarm.opened', 3);
  expect(
    account
      .told()
      .map(({ data }) => data.evId)
      .toSorted(),
  ).toEqual([1, 1, 2]);
});

it('warm for ten minutes rings once it is so long, without a further value', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([
    purposeOf([warm(1, { threshold: { forMs: 10 * minuteMs } })]),
  ]);
  await sensor.measure({ val: 9, ts: timeline.now() });
  expect(await account.alarms()).toEqual([]);
  await pass(11 * minuteMs);
  const [opened] = await account.toldOf('alarm.opened', 1);
  expect(opened?.data.evId).toBe(1);
});
