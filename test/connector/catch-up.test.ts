import { afterEach, expect, test } from 'vitest';
import { DeviceLimits } from '../../connector/device/limits.ts';
import { limits, manualClock, startWorld, until, type World } from './harness.ts';
import { startHttpWorld, type HttpWorld } from './http/harness.ts';
import { enter, moments, publishPacket } from './raw.ts';

const slow = { messagesPerSecond: 10, messagesBurst: 10 };
let world: World | null;
let http: HttpWorld | null;
afterEach(async () => {
  await world?.close();
  await http?.close();
  world = http = null;
});

/** A device with this many messages to send, at most ten of them in a read. The clock stands still. */
async function backlog(count: number, mayCatchUp: () => boolean) {
  const clock = manualClock();
  const tuning = { maxUnackedMessages: 10 };
  world = await startWorld({ now: clock.now, limits: slow, tuning, ports: { mayCatchUp } });
  const raw = await enter(world);
  const topic = `devices/${world.device.uuid}/up/measurements`;
  for (let n = 1; n <= count; n += 1)
    raw.send(publishPacket(topic, { sId: '0x1', val: n, ts: n }, { qos: 1, messageId: n }));
  const acks = () => raw.of('puback').length;
  return { raw, clock, acks };
}

test('a device sends everything that it kept while it may catch up', async () => {
  const { raw } = await backlog(300, () => true);
  await raw.expect('puback', 300);
});

test('one that has to wait continues once it may, long before its rate allows', async () => {
  let isAlone = false;
  const { raw, acks } = await backlog(300, () => isAlone);
  await raw.expect('puback', 10);
  if (world) await moments(world);
  expect(acks()).toBeLessThan(30);
  isAlone = true;
  await raw.expect('puback', 300);
});

test('and is limited to its rate again once somebody else sends', async () => {
  let asked = 0;
  const { clock, acks } = await backlog(300, () => ++asked <= 5);
  await until(() => asked > 8);
  expect(acks()).toBeGreaterThan(11);
  expect(acks()).toBeLessThan(100);
  await until(() => {
    clock.monotonicMs += 1_000;
    return acks() === 300;
  });
});

test('what is sent over MQTT counts for HTTP too, and the other way round', async () => {
  const clock = manualClock();
  const rates = { ...limits, ...slow };
  const ports = { othersWait: () => false, measurementsPerSecond: () => 20_000 };
  const deviceLimits = new DeviceLimits({ ports, limits: rates, now: clock.now });
  const both = { now: clock.now, deviceLimits };
  world = await startWorld(both);
  http = await startHttpWorld(both);
  const { device, store, connector } = http;
  for (let n = 0; n < 5; n += 1)
    expect((await http.post('measurements', { sId: '0x1', val: n, ts: n })).status).toBe(200);
  const raw = await enter(world);
  const topic = `devices/${device.uuid}/up/measurements`;
  const publish = (n: number) =>
    raw.send(publishPacket(topic, { sId: '0x1', val: n, ts: n }, { qos: 1, messageId: n }));
  for (let n = 1; n <= 5; n += 1) publish(n);
  await raw.expect('puback', 5);
  const answer = http.post('measurements', { sId: '0x1', val: 9, ts: 9 });
  await until(() => connector.snapshot().waiting === 1);
  publish(6);
  await moments(world);
  expect([raw.of('puback').length, store.stored.length]).toEqual([5, 5]);
  clock.monotonicMs += 1_000;
  expect((await answer).status).toBe(200);
  await raw.expect('puback', 6);
});

test('a device over HTTP does not wait either while it may catch up', async () => {
  const clock = manualClock();
  let isAlone = true;
  const ports = { mayCatchUp: () => isAlone };
  http = await startHttpWorld({ now: clock.now, limits: slow, ports });
  const post = (n: number) => http?.post('measurements', { sId: '0x1', val: n, ts: n });
  for (let n = 0; n < 30; n += 1) expect((await post(n))?.status).toBe(200);
  isAlone = false;
  const { connector } = http;
  const answer = post(30);
  await until(() => connector.snapshot().waiting === 1);
  isAlone = true;
  expect((await answer)?.status).toBe(200);
});
