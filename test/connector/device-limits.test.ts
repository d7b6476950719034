import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { beforeEach, describe, expect, test } from 'vitest';
import { DeviceLimits, type DeviceRates } from '../../connector/device/limits.ts';
import { createHttpDevices } from '../../connector/http/devices.ts';
import { createHttpUplink } from '../../connector/http/uplink.ts';
import { defaultTuning } from '../../connector/ports.ts';
import { limits as usualLimits, until } from './harness.ts';
import { createStore } from './store.ts';

const limits = { messagesPerSecond: 10, messagesBurst: 10, measurementsPerSecond: 100 };
const device = (deviceId: number, accountId = 1) => ({ deviceId, accountId, uuid: `d${deviceId}` });
const dayMs = 86_400_000;

let monotonicMs: number;
let mayCatchUp: boolean;
let beyond: number;
let store: DeviceLimits;
beforeEach(() => {
  monotonicMs = 0;
  mayCatchUp = true;
  beyond = 0;
  store = new DeviceLimits({
    ports: {
      othersWait: () => false,
      measurementsPerSecond: () => 1_000,
      mayCatchUp: () => mayCatchUp,
    },
    limits,
    now: () => monotonicMs,
    beyondPerDay: 1_000,
    observe: { waited() {}, beyond: (amount) => void (beyond += amount) },
  });
});

/** Sends one message after the other until one has to wait. Returns how many were sent. */
function sendWhileItMay(rates: DeviceRates, items: number, atMost = 10_000) {
  let sent = 0;
  while (sent < atMost && store.waitMs(rates) === 0) {
    store.charge(rates, { messages: 1, items }, monotonicMs);
    sent += 1;
  }
  return sent;
}

describe('a device that catches up', () => {
  test('is limited to its rate while it may not', () => {
    mayCatchUp = false;
    const rates = store.enter(device(1));
    expect(sendWhileItMay(rates, 1)).toBe(10);
    // Asking changes nothing.
    expect([store.waitMs(rates), store.waitMs(rates)]).toEqual([100, 100]);
    store.charge(rates, { messages: 2 }, monotonicMs);
    expect(store.waitMs(rates)).toBe(300);
    mayCatchUp = true;
    expect(store.waitMs(rates)).toBe(0);
    expect(beyond).toBe(2);
    // What it owed is forgiven; what it sends now it owes again.
    store.charge(rates, { messages: 1 }, monotonicMs);
    mayCatchUp = false;
    expect(store.waitMs(rates)).toBe(200);
  });

  test.each([
    ['messages', 1, 1_010],
    ['measurements', 100, 11],
  ])('may send a limited amount beyond its rates in a day, in %s', (_of, items, most) => {
    const rates = store.enter(device(1));
    expect(sendWhileItMay(rates, items)).toBeGreaterThanOrEqual(most);
    expect(beyond).toBeGreaterThanOrEqual(1_000);
    expect(beyond).toBeLessThan(1_000 + items);
    // From then on its rate applies, plus what the daily amount regains.
    monotonicMs += 60_000;
    const soFar = beyond;
    sendWhileItMay(rates, items);
    expect(beyond - soFar).toBeLessThanOrEqual(1 + items);
    monotonicMs += dayMs;
    expect(sendWhileItMay(rates, items)).toBeGreaterThanOrEqual(most - 1);
  });

  test('does not start anew by leaving for a while', () => {
    const rates = store.enter(device(1));
    sendWhileItMay(rates, 1);
    monotonicMs += 10_000;
    expect(store.isFull(rates)).toBe(true);
    store.leave(rates);
    const again = store.enter(device(1));
    expect(again).toBe(rates);
    expect(sendWhileItMay(again, 1)).toBeLessThan(20);
    store.leave(again);
    expect(store.count()).toBe(1);
  });

  test('is forgotten once its daily amount is full again', () => {
    for (let n = 1; n <= 1_500; n += 1) {
      const rates = store.enter(device(n));
      sendWhileItMay(rates, 1, 12);
      monotonicMs += 2_000;
      store.leave(rates);
    }
    expect(store.count()).toBeGreaterThan(0);
    monotonicMs += dayMs;
    for (let n = 2_000; n <= 5_000; n += 1) {
      const rates = store.enter(device(n));
      sendWhileItMay(rates, 1, 12);
      monotonicMs += 2_000;
      store.leave(rates);
    }
    expect(store.count()).toBeLessThan(3_001);
    monotonicMs += dayMs;
    const one = store.enter(device(1));
    store.leave(one);
    expect(store.enter(device(1)).beyond).toBeNull();
  });

  test('pays for polls and pings from a separate bucket, which catching up does not lift', () => {
    const rates = store.enter(device(1));
    store.charge(rates, { others: 15 }, monotonicMs);
    expect(store.waitMs(rates)).toBe(0);
    expect(store.othersWaitMs(rates)).toBe(600);
  });
});

test('a device of two transports has one set of rates', () => {
  mayCatchUp = false;
  const first = store.enter(device(1));
  const second = store.enter(device(1));
  store.charge(first, { messages: 10 }, monotonicMs);
  expect(store.waitMs(second)).toBeGreaterThan(0);
  store.charge(second, { items: 60 }, monotonicMs);
  store.charge(store.enter(device(2)), { items: 60 }, monotonicMs);
  expect(first.account.measurements.tokens).toBe(880);
  store.leave(first);
  expect(store.enter(device(1))).toBe(second);
});

test('an account in debt is not forgotten with its devices, whose own rates have recovered', () => {
  const ports = { othersWait: () => true, measurementsPerSecond: () => 1_000 };
  const own = new DeviceLimits({ ports, limits, now: () => monotonicMs });
  const all = Array.from({ length: 50 }, (_, n) => own.enter(device(n)));
  for (const rates of all) own.charge(rates, { items: 100 }, monotonicMs);
  monotonicMs += 2_000;
  for (const rates of all) own.leave(rates);
  expect(own.accountWaitMs(own.enter(device(99)).account)).toBeGreaterThan(0);
  expect(own.count()).toBe(2);
});

test('a device that is forgotten while its bodies arrive has one queue, and one rate', async () => {
  const { store: ingest, ports } = createStore();
  const { identity, uuid } = ingest.addDevice(1);
  const own = { ...usualLimits, messagesPerSecond: 1, messagesBurst: 1 };
  const now = () => 0;
  const deviceLimits = new DeviceLimits({ ports, limits: own, now });
  const devices = createHttpDevices({ ports, deviceLimits, now });
  const uplink = createHttpUplink({
    ports,
    devices,
    deviceLimits,
    limits: own,
    tuning: defaultTuning,
    observe: { messages: new Map(), acknowledged() {} },
    log: { info() {}, warn() {}, error() {} },
    now,
    sendProblem() {},
  });
  const server = createServer((request, response) => {
    void uplink.post(request, response, identity, 'measurements');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const body = JSON.stringify({ sId: '0x1', val: 1 });
  const begin = async () => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const before = uplink.bytes();
    const head = `POST /devices/${uuid}/up/measurements HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`;
    socket.write(head + body.slice(0, 10));
    await until(() => uplink.bytes() > before, 'the beginning of a body');
    return socket;
  };
  const first = await begin();
  devices.forgetIdle();
  const second = await begin();
  for (const socket of [first, second]) socket.write(body.slice(10));
  await until(() => ingest.stored.length + devices.countWaiting() === 2, 'both');
  expect([ingest.stored.length, devices.countWaiting()]).toEqual([1, 1]);
  devices.stop();
  for (const socket of [first, second]) socket.destroy();
  server.close();
  await once(server, 'close');
});

test('one answer says how long a message waits: for its device, its account, or the quotas of that', () => {
  let quotaMs = 0;
  const ports = {
    othersWait: () => true,
    measurementsPerSecond: () => 1_000,
    throttle: { waitMs: () => quotaMs },
  };
  const own = new DeviceLimits({ ports, limits, now: () => monotonicMs });
  const [one, other] = [own.enter(device(1)), own.enter(device(2))];
  expect(own.waitMs(one)).toBe(0);
  own.charge(one, { messages: 12, items: 50 }, monotonicMs);
  expect([own.waitMs(one), own.waitMs(other)]).toEqual([300, 0]);
  own.charge(other, { items: 1_950 }, monotonicMs);
  expect([own.deviceWaitMs(one), own.accountWaitMs(one.account)]).toEqual([300, 1_001]);
  expect(own.waitMs(one)).toBe(1_001);
  quotaMs = 5_000;
  expect(own.waitMs(one)).toBe(5_000);
});
