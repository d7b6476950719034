import { afterAll, beforeAll, expect, it } from 'vitest';
import { coldAgain, purposeOf, warm } from './purposes.ts';
import { runOn, schema } from '../../support/template.ts';
import { minuteMs, startTimeline, type Account, type Timeline } from './timeline.ts';

let timeline: Timeline;
beforeAll(async () => void (timeline = await startTimeline()));
afterAll(() => timeline?.close());

const moving = warm(1, { actions: { engine: { gotoStId: 2 } } });
const twoStates = purposeOf([moving], [coldAgain(2, 1)]);

type Refused = { status: number; type: string; values: { sId: string; val: number; ts: number }[] };

const post = ({ app }: Account, alarmId: string, what: string, body?: object) =>
  app.call('POST', `/v2/alarms/${alarmId}/${what}`, body);
/** The body of an answer that is not 200. */
async function refused(account: Account, alarmId: string, what: string): Promise<Refused> {
  const { message } = await post(account, alarmId, what).then(
    () => new Error('{ "status": 200 }'),
    (error: unknown) => error as Error,
  );
  return JSON.parse(message.slice(message.indexOf('{'))) as Refused;
}
const newest = async (account: Account) => {
  const [alarm] = await account.alarms();
  if (!alarm) throw new Error('There is no alarm.');
  return alarm;
};

/** An account with an alarm that somebody was told of. */
async function alarmed(purpose: object, senses?: string[]) {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([purpose], senses);
  await sensor.measure({ val: 13.2 });
  await account.toldOf('alarm.opened', 1);
  await expect.poll(async () => (await newest(account)).told).toBe('told');
  return { account, sensor, alarm: await newest(account) };
}

it('while its condition holds an alarm is closed only by force; the answer says the newest values', async () => {
  const { account, sensor, alarm } = await alarmed(twoStates);
  await sensor.measure({ val: 13.9 });
  const answer = await refused(account, alarm.alarmId, 'close');
  expect(answer).toMatchObject({
    status: 409,
    type: 'urn:sensorium:error:condition-holds',
    values: [{ sId: '0x01', val: 13.9 }],
  });
  expect(answer.values[0]?.ts).toBeGreaterThan(alarm.beganTs ?? Infinity);
  expect(await newest(account)).toMatchObject({ state: 'open', notes: [] });
  await post(account, alarm.alarmId, 'acknowledge', { note: 'I am looking.' });
  await post(account, alarm.alarmId, 'close', { note: 'The sensor is broken.', force: true });
  expect(await newest(account)).toMatchObject({
    state: 'closed',
    closedBy: 'person',
    overTs: null,
    notes: [
      { on: 'acknowledge', text: 'I am looking.' },
      { on: 'close', text: 'The sensor is broken.' },
    ],
  });
  await post(account, alarm.alarmId, 'close', { note: 'It is replaced.' });
  type Audit = { entries: { kind: string; details: { note?: string } }[] };
  const { entries } = await account.app.call<Audit>('GET', '/v2/accounts/audit?limit=10');
  const noted = entries.filter(({ details }) => details.note !== undefined);
  expect(noted.map(({ kind, details }) => [kind, details.note])).toEqual([
    ['alarm-noted', 'It is replaced.'],
    ['alarm-closed', 'The sensor is broken.'],
    ['alarm-acknowledged', 'I am looking.'],
  ]);
});

it('within a minute the closing is taken back: acknowledgement and announcement are as before, nobody is told', async () => {
  const { account, sensor, alarm } = await alarmed(twoStates);
  const { alarmId } = alarm;
  await post(account, alarmId, 'acknowledge');
  const before = await newest(account);
  await post(account, alarmId, 'close', { force: true });
  await post(account, alarmId, 'reopen');
  await post(account, alarmId, 'reopen');
  expect(await newest(account)).toEqual(before);
  await sensor.measure({ val: 7 });
  expect(await newest(account)).toMatchObject({ alarmId, closedBy: 'left-state' });
  expect(await refused(account, alarmId, 'reopen')).toMatchObject({ status: 409 });
  expect(account.told()).toHaveLength(1);
});

it('not later than that, and not once the condition has ended', async () => {
  const { account, alarm } = await alarmed(twoStates);
  await post(account, alarm.alarmId, 'close', { force: true });
  timeline.advance(61_000);
  expect(await refused(account, alarm.alarmId, 'reopen')).toMatchObject({ status: 409 });
  const other = await alarmed(twoStates);
  await post(other.account, other.alarm.alarmId, 'close', { force: true });
  await other.sensor.measure({ val: 7 });
  expect(await refused(other.account, other.alarm.alarmId, 'reopen')).toMatchObject({
    status: 409,
    detail: 'The condition of this alarm has ended since.',
  });
});

it('an alarm that the event opened meanwhile becomes part of the reopened one', async () => {
  const { account, sensor, alarm } = await alarmed(purposeOf([warm(1)]));
  await post(account, alarm.alarmId, 'close', { force: true });
  await sensor.measure({ val: 14 });
  expect(await account.alarms()).toMatchObject([{ state: 'open' }, { state: 'closed' }]);
  await post(account, alarm.alarmId, 'reopen');
  const { alarmId, beganTs } = alarm;
  expect(await account.alarms()).toMatchObject([
    { alarmId, state: 'open', firings: 2, beganTs, told: 'told' },
  ]);
  await sensor.measure({ val: 7 });
  expect(await account.alarms()).toMatchObject([{ alarmId, closedBy: 'cleared' }]);
});

it('with what people know of it: its messages, its notes, that it was acknowledged', async () => {
  const { account, sensor, alarm } = await alarmed(purposeOf([warm(1)]));
  const { alarmId } = alarm;
  await post(account, alarmId, 'close', { force: true, note: 'It was defrosting.' });
  await sensor.measure({ val: 14 });
  await account.toldOf('alarm.opened', 2);
  await expect.poll(async () => (await newest(account)).told).toBe('told');
  const second = (await newest(account)).alarmId;
  await post(account, second, 'acknowledge', { note: 'I am looking.' });
  await post(account, alarmId, 'reopen');
  expect(await account.alarms()).toMatchObject([
    {
      alarmId,
      state: 'acknowledged',
      told: 'told',
      notes: [{ text: 'It was defrosting.' }, { text: 'I am looking.' }],
      deliveries: [
        { type: 'opened', state: 'sent' },
        { type: 'opened', state: 'sent' },
      ],
    },
  ]);
  const { rows } = await runOn(timeline.service.databaseUrl, (client) =>
    client.query<{ change: string }>(
      `select body->>'change' as change from ${schema}.alarm_change
        where (body->>'alarmId')::bigint = any($1::bigint[]) order by xact desc, seq desc limit 2`,
      [[alarmId, second]],
    ),
  );
  expect(rows.map(({ change }) => change)).toEqual(['reopened', 'removed']);
});

it('what still holds 30 minutes after it was closed by force opens and is told again, also after a mute', async () => {
  const { account, sensor, alarm } = await alarmed(twoStates);
  await post(account, alarm.alarmId, 'close', { force: true });
  await sensor.measure({ val: 13.4 });
  timeline.advance(29 * minuteMs);
  await sensor.measure({ val: 13.5 });
  expect(await account.alarms()).toMatchObject([{ state: 'closed' }]);
  timeline.advance(minuteMs);
  await account.toldOf('alarm.opened', 2);
  const { beganTs } = alarm;
  await expect
    .poll(() => account.alarms())
    .toMatchObject([
      { state: 'open', beganTs, told: 'told' },
      { alarmId: alarm.alarmId, state: 'closed' },
    ]);
  const again = await newest(account);
  const mute = `/v2/devices/${sensor.uuid}/mute`;
  await account.app.call('PUT', mute, { untilTs: timeline.now() + 60 * minuteMs });
  await post(account, again.alarmId, 'close', { force: true });
  timeline.advance(31 * minuteMs);
  await expect.poll(async () => (await newest(account)).state).toBe('open');
  expect(account.told()).toHaveLength(2);
  timeline.advance(30 * minuteMs);
  await account.toldOf('alarm.opened', 3);
  await sensor.measure({ val: 7 });
  expect(await newest(account)).toMatchObject({ closedBy: 'left-state', beganTs });
});

it('what does not hold any more opens nothing', async () => {
  const { account, sensor, alarm } = await alarmed(twoStates);
  await post(account, alarm.alarmId, 'close', { force: true });
  await sensor.measure({ val: 7 });
  timeline.advance(31 * minuteMs);
  const other = await alarmed(twoStates);
  await post(other.account, other.alarm.alarmId, 'close', { force: true });
  timeline.advance(31 * minuteMs);
  await other.account.toldOf('alarm.opened', 2);
  expect(await account.alarms()).toHaveLength(1);
});

it('nor does it if a version evaluated meanwhile that does not know what people closed', async () => {
  const moved = await alarmed(twoStates);
  const plain = await alarmed(purposeOf([warm(1)]));
  const holds = await alarmed(purposeOf([warm(1)]));
  for (const { account, alarm } of [moved, plain, holds])
    await post(account, alarm.alarmId, 'close', { force: true });
  await moved.sensor.measure({ val: 7 });
  await plain.sensor.measure({ val: 7 });
  // Such a version leaves the time in the row.
  await runOn(timeline.service.databaseUrl, (client) =>
    client.query(`update ${schema}.alarm set again_at = closed_at + interval '30 min'`),
  );
  timeline.advance(31 * minuteMs);
  await holds.account.toldOf('alarm.opened', 2);
  await expect
    .poll(() =>
      runOn(timeline.service.databaseUrl, async (client) => {
        const { rowCount } = await client.query(
          `select from ${schema}.alarm where again_at is not null`,
        );
        return rowCount;
      }),
    )
    .toBe(0);
  expect(await moved.account.alarms()).toHaveLength(1);
  expect(await plain.account.alarms()).toHaveLength(1);
});

it('another one opens after `repeatMs`; that of a global state also if the device is in another state by then', async () => {
  const repeated = await alarmed(purposeOf([warm(1, { actions: { repeatMs: 10 * minuteMs } })]));
  await post(repeated.account, repeated.alarm.alarmId, 'close', { force: true });
  timeline.advance(9 * minuteMs);
  await repeated.sensor.measure({ val: 13 });
  expect(await repeated.account.alarms()).toHaveLength(2);
  const [fired] = await repeated.account.alarms();
  await post(repeated.account, fired?.alarmId ?? '', 'close', { force: true });
  timeline.advance(11 * minuteMs);
  await repeated.account.toldOf('alarm.opened', 3);

  const move = {
    evId: 5,
    causes: [{ sId: '0x02', thresholds: { isGt: 0 } }],
    actions: { engine: { gotoStId: 2 } },
  };
  const purpose = purposeOf([move], [], [warm(1)]);
  Object.assign(purpose.states[2] ?? {}, { isGlobal: true });
  const { account, sensor, alarm } = await alarmed(purpose, ['0x01', '0x02']);
  await post(account, alarm.alarmId, 'close', { force: true });
  await sensor.measure({ sId: '0x02', val: 1 });
  timeline.advance(31 * minuteMs);
  await account.toldOf('alarm.opened', 2);
  expect(await account.alarms()).toMatchObject([
    { state: 'open', beganTs: alarm.beganTs },
    { alarmId: alarm.alarmId },
  ]);
});

it('an alarm beyond the quota opens again, is told, and is still deleted when it closes', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  await sensor.measure({ val: 13 });
  await account.toldOf('alarm.opened', 1);
  await runOn(timeline.service.databaseUrl, (client) =>
    client.query(`update ${schema}.alarm set is_beyond_quota = true where device_uuid = $1`, [
      sensor.uuid,
    ]),
  );
  await post(account, (await newest(account)).alarmId, 'close', { force: true });
  timeline.advance(31 * minuteMs);
  await account.toldOf('alarm.opened', 2);
  await expect.poll(() => account.alarms()).toMatchObject([{ state: 'open', told: 'told' }]);
  await sensor.measure({ val: 7 });
  expect(await account.alarms()).toEqual([]);
});

it('what people wrote may be long: then a page has fewer alarms', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([purposeOf([warm(1)])]);
  for (let n = 0; n < 40; n += 1) await sensor.measure({ val: 13 }, { val: 7 });
  await runOn(timeline.service.databaseUrl, (client) =>
    client.query(
      `update ${schema}.alarm
          set notes = (select json_agg(json_build_object('ts', 1, 'by', '', 'on', 'close', 'text', repeat('x', 1000)))
                         from generate_series(1, 20))
        where device_uuid = $1`,
      [sensor.uuid],
    ),
  );
  const { body, next } = await account.app.page('/v2/alarms?limit=100');
  const { alarms } = body as { alarms: unknown[] };
  expect(alarms.length).toBeGreaterThan(20);
  expect(alarms.length).toBeLessThan(30);
  const rest = await account.app.page(next ?? '');
  expect((rest.body as { alarms: unknown[] }).alarms).toHaveLength(40 - alarms.length);
  expect(rest.next).toBeUndefined();
});

it('values ahead of the service: an alarm ends by the same clock as it began', async () => {
  const account = await timeline.openAccount();
  const sensor = await account.addDevice([purposeOf([warm(1, { threshold: { count: 2 } })])]);
  const ahead = () => timeline.now() + 2 * minuteMs;
  await sensor.measure({ val: 13, ts: ahead() });
  await sensor.measure({ val: 13, ts: ahead() + minuteMs });
  await sensor.measure({ val: 7, ts: ahead() + 2 * minuteMs });
  const [alarm] = await account.alarms();
  const { beganTs, beganArrivedTs, overTs, overArrivedTs } = alarm ?? {};
  // What is ahead counts as of its arrival, as the event's own time does.
  expect([beganTs, overTs]).toEqual([beganArrivedTs, overArrivedTs]);
});
