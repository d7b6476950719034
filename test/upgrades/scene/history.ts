import { call, until } from '../ask.ts';
import type { DeviceKeys } from '../fixture.ts';
import { asDevice, install, registerDevice, type Site } from './device.ts';
import { greenhouse, warmAndCold } from './purposes.ts';

const minuteMs = 60_000;
const dayMs = 1_440 * minuteMs;

/** Twelve days of a number and of a position. Quarters, whose sums are exact in every order. */
function listDays(nowTs: number) {
  const rows = [];
  for (let ts = nowTs - 12 * dayMs; ts < nowTs - minuteMs; ts += 45 * minuteMs) {
    rows.push({ sId: '0x01', val: ((ts / minuteMs) % 160) / 4 - 20, ts });
    if (rows.length % 6 === 0)
      rows.push({ sId: '0x06', val: { lat: 50 + rows.length / 1_024, long: -14.5 }, ts });
  }
  return rows;
}

/** A plain sensor: numbers, positions, a shared millisecond, late values and repetitions. */
export async function fillHistory(site: Site, nowTs: number): Promise<DeviceKeys> {
  const keys = await registerDevice(site, 'many days');
  const rows = listDays(nowTs);
  const shared = [5, 3, 4.5, -100, 100, 0].map((val) => ({ sId: '0x02', val, ts: nowTs - 5_000 }));
  const late = [3, 17, 40].map((days) => ({
    sId: '0x01',
    val: days,
    ts: nowTs - days * dayMs - 7,
  }));
  await asDevice(site, keys, async ({ publish }) => {
    for (let at = 0; at < rows.length; at += 100)
      await publish('up/measurements', rows.slice(at, at + 100));
    await publish('up/measurements', shared);
    await publish('up/measurements', shared.slice(2));
    await publish('up/measurements', late);
    await publish('up/measurements', rows.slice(0, 50));
    await publish('up/measurements', { sId: '0x03', val: 0.1 + 0.2, ts: nowTs - 4_000 });
    await publish('up/state', { puId: 7, stId: 1, ts: nowTs - 3_000 });
    await publish('up/configuration', {
      device: { name: 'many days', swVersion: '1.1' },
      module: [{ moduleId: 'm', senses: [{ sId: '0x01' }, { sId: '0x02' }, { sId: '0x06' }] }],
    });
  });
  return keys;
}

/** A stored backtest with lines of every kind. */
export async function playBack({ url, token }: Site, { uuid }: DeviceKeys, nowTs: number) {
  const { backtestId } = await call<{ backtestId: string }>(url, '/v2/backtests', {
    method: 'POST',
    token,
    body: {
      name: 'Warm and cold',
      candidate: { purposes: [warmAndCold] },
      against: 'recorded',
      devices: [uuid],
      start: nowTs - minuteMs,
      end: Date.now(),
    },
  });
  await until('the backtest', async () => {
    const path = `/v2/backtests/${backtestId}`;
    const { state } = await call<{ state: string }>(url, path, { token });
    return state === 'done' ? true : null;
  });
}

/** A device with a rejection for every reason that a device can cause. */
export async function beRejected(site: Site, nowTs: number): Promise<DeviceKeys> {
  const keys = await registerDevice(site, 'is often wrong');
  await install(site, [keys.uuid], { purposes: [greenhouse] });
  await asDevice(site, keys, async ({ publish }) => {
    await publish('up/measurements', 'no JSON');
    await publish('up/measurements', [
      { sId: '0x01', val: 'warm' },
      { sId: '0x01', val: 1.5 },
    ]);
    await publish('up/measurements', { sId: '0xff', val: 1 });
    await publish('up/measurements', { sId: '0x01', val: 900 });
    await publish('up/measurements', { sId: '0x01', val: 1, ts: nowTs + dayMs });
    await publish('up/telemetry', { any: 'thing' });
    await publish('up/state', { puId: 1, stId: 77 });
    await publish('up/profile', { pId: 'unheard of', state: 'current' });
  });
  return keys;
}

/** A device with an engine of its own, which reports its state and its events. */
export async function evaluateItself(site: Site, nowTs: number) {
  const keys = await registerDevice(site, 'own engine');
  const { uuid } = keys;
  const pId = await install(site, [uuid], { purposes: [greenhouse] });
  await asDevice(site, keys, async ({ publish }) => {
    await publish('up/profile', { pId, state: 'current', engine: 'device' });
    await publish('up/state', { puId: 1, stId: 2, evId: 1, ts: nowTs - 2_500 });
    const found = (evId: number, ts: number, senses: object[]) => ({
      cause: { engine: { pId, puId: 1, stId: 2, evId, ts }, senses },
    });
    const first = found(11, nowTs - 2_000, [{ sId: '0x02', val: 16, ts: nowTs - 2_000 }]);
    const inside = { sId: '0x06', val: 1, lat: 50.5, long: 14.5, ts: nowTs - 1_500 };
    await publish('up/events', [first, found(14, nowTs - 1_500, [inside])]);
    await publish('up/events', first);
  });
  return { device: keys, pId };
}
