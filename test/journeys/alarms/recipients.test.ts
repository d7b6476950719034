import { afterAll, beforeAll, expect, it } from 'vitest';
import { purposeOf, warm } from './purposes.ts';
import { hourMs, minuteMs, startTimeline, type Timeline } from './timeline.ts';

let timeline: Timeline;
beforeAll(async () => void (timeline = await startTimeline()));
afterAll(() => timeline?.close());

const alarmOf = async (account: Awaited<ReturnType<Timeline['openAccount']>>) =>
  (await account.alarms())[0];

it('no recipient at first, one added while the alarm is open: rings', async () => {
  const account = await timeline.openAccount();
  await account.useNobody();
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  await sensor.measure({ val: 9 });
  expect(await alarmOf(account)).toMatchObject({ told: 'none', notNotified: 'no-recipient' });
  expect(await sensor.events()).toMatchObject([{ notified: false, notNotified: 'no-recipient' }]);
  await account.useWebhook();
  await account.toldOf('alarm.opened', 1);
});

it.each([
  ['of Update Account', 'PUT', '/v2/accounts', { apn: [{ token: 'a token of a telephone' }] }],
  ['by itself', 'POST', '/v2/accounts/push-tokens', { token: 'a token of a telephone' }],
])(
  'a push token %s that is added while the alarm is open is tried at once',
  async (_, method, path, body) => {
    const account = await timeline.openAccount();
    await account.useNobody();
    const sensor = await account.addDevice([purposeOf([warm(1)])]);
    await sensor.measure({ val: 9 });
    expect(await alarmOf(account)).toMatchObject({ notNotified: 'no-recipient' });
    await account.app.call(method, path, body);
    // Nothing here can send push messages.
    await expect
      .poll(async () => (await alarmOf(account))?.notNotified, { timeout: 60_000 })
      .toBe('not-configured');
  },
);

it('a label that makes a contact match the device takes effect at once', async () => {
  const account = await timeline.openAccount();
  const { url } = account.hooks;
  const webhooks = [{ url, labels: ['cellar'] }];
  await account.app.call('PUT', '/v2/accounts/contacts', { emails: [], webhooks });
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  await sensor.measure({ val: 9 });
  expect(await alarmOf(account)).toMatchObject({ notNotified: 'no-recipient' });
  await account.app.call('PUT', `/v2/devices/${sensor.uuid}/labels`, { labels: ['cellar'] });
  await account.toldOf('alarm.opened', 1);
});

it('a snooze that ends while the alarm is still true: rings', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  await sensor.measure({ val: 9 });
  await account.toldOf('alarm.opened', 1);
  const { alarmId } = (await alarmOf(account)) ?? {};
  await account.app.call('POST', `/v2/alarms/${alarmId}/snooze`, {
    untilTs: timeline.now() + hourMs,
  });
  await sensor.measure({ val: 9 });
  expect((await sensor.events()).at(-1)).toMatchObject({ notNotified: 'snoozed' });
  timeline.advance(hourMs + minuteMs);
  await account.toldOf('alarm.opened', 2);
});

it('an acknowledged alarm does not notify again; after a person closed it, the next firing rings', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([
    purposeOf([warm(1, { actions: { repeatMs: minuteMs } })]),
  ]);
  await sensor.measure({ val: 9 });
  await account.toldOf('alarm.opened', 1);
  timeline.advance(61_000);
  await account.toldOf('alarm.repeated', 1);
  const { alarmId } = (await alarmOf(account)) ?? {};
  await account.app.call('POST', `/v2/alarms/${alarmId}/acknowledge`);
  timeline.advance(hourMs);
  await sensor.measure({ val: 9 });
  expect((await sensor.events()).at(-1)).toMatchObject({ notNotified: 'same-episode' });
  await account.app.call('POST', `/v2/alarms/${alarmId}/close`, { force: true });
  expect(await account.alarms('?state=open')).toEqual([]);
  await sensor.measure({ val: 9 });
  await account.toldOf('alarm.opened', 2);
  expect(account.told().map(({ type }) => type)).toEqual([
    'alarm.opened',
    'alarm.repeated',
    'alarm.opened',
  ]);
});

it('every provider refuses: withdrawn, and sent again later, with growing pauses', async () => {
  let isRefusing = true;
  const account = await timeline.openAccount(() => ({ status: isRefusing ? 410 : 204 }));
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  await sensor.measure({ val: 9 });
  const told = async () => (await alarmOf(account))?.told;
  await expect.poll(told, { timeout: 60_000 }).toBe('withdrawn');
  timeline.advance(61_000);
  await expect.poll(() => account.told().length, { timeout: 60_000 }).toBe(2);
  await expect.poll(told, { timeout: 60_000 }).toBe('withdrawn');
  isRefusing = false;
  timeline.advance(5 * minuteMs + 1_000);
  await expect.poll(told, { timeout: 60_000 }).toBe('told');
  expect(account.told()).toHaveLength(3);
  type Usage = { usage: { quota: string; used: number | null }[] };
  const { usage } = await account.app.call<Usage>('GET', '/v2/accounts/usage');
  expect(usage.find(({ quota }) => quota === 'webhooksPerDay')?.used).toBe(1);
});

it('a contact with minSeverity is notified of nothing less bad', async () => {
  const account = await timeline.openAccount();
  const put = (minSeverity: string) =>
    account.app.call('PUT', '/v2/accounts/contacts', {
      webhooks: [{ url: account.hooks.url, minSeverity }],
    });
  await put('critical');
  const sensor = await account.addDevice([
    purposeOf([
      warm(1),
      warm(2, { thresholds: { isGt: 20 }, actions: { severity: 'critical' } }),
      warm(3, { thresholds: { isGt: 30 }, actions: { severity: 'info' } }),
    ]),
  ]);
  await sensor.measure({ val: 40 });
  const [told] = await account.toldOf('alarm.opened', 1);
  expect(told?.data.evId).toBe(2);
  expect(
    (await account.alarms()).map(({ evId, severity, notNotified }) => [
      evId,
      severity,
      notNotified,
    ]),
  ).toEqual([
    [3, 'info', 'no-recipient'],
    [2, 'critical', null],
    [1, 'warning', 'no-recipient'],
  ]);
  await put('warning');
  await account.toldOf('alarm.opened', 2);
  expect(account.told().map(({ data }) => data.evId)).toEqual([2, 1]);
});
