import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openApp, type App, type Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService, type TestService } from './service.ts';

const minute = 60_000;

type Alarm = { eventName: string; state: string; closedBy: string | null; told: string };

let service: TestService;
let app: App;
beforeAll(async () => {
  service = await testService();
  app = await openApp(service.url);
});
afterAll(() => service?.close());

/** Installs an example of examples/ on a device with one sense. */
async function install(example: string, sId: string) {
  const text = readFileSync(new URL(`../../examples/${example}.json`, import.meta.url), 'utf8');
  const configured = { device: { name: example }, module: [{ moduleId: 'm', senses: [{ sId }] }] };
  const device = await connectDevice(
    await app.call<Registration>('POST', '/v2/devices', configured),
  );
  await app.call('POST', '/v2/devices/profile', {
    deviceAuthUuids: [device.uuid],
    purposes: [JSON.parse(text)],
  });
  const alarms = async () =>
    (await app.call<{ alarms: Alarm[] }>('GET', `/v2/alarms?device=${device.uuid}`)).alarms;
  /** Measures values a minute apart, the last one now, and sends all of them at once. */
  const measure = (values: number[]) => {
    const now = Date.now();
    const at = (index: number) => now - (values.length - 1 - index) * minute;
    const sent = values.map((val, index) => ({ sId, val, ts: at(index) }));
    return device.publish('up/measurements', sent);
  };
  return { device, alarms, measure };
}

describe('an example on the running service', () => {
  it('cold-room.json: one alarm while it is warm, and nobody is notified', async () => {
    const { device, alarms } = await install('cold-room', '0x10');
    const measure = (val: number) => device.publish('up/measurements', { sId: '0x10', val });
    for (const val of [9, 9, 9, 9, 9, 7, 9]) await measure(val);
    const open = { eventName: 'too warm', state: 'open', told: 'none' };
    expect(await alarms()).toEqual([expect.objectContaining(open)]);
    for (const val of [5, 5]) await measure(val);
    const closed = { ...open, state: 'closed', closedBy: 'left-state' };
    expect(await alarms()).toEqual([expect.objectContaining(closed)]);
    await device.end();
  });

  it('leaking-tank.json: one alarm per leak', async () => {
    const { device, alarms, measure } = await install('leaking-tank', '0x30');
    // An ordinary hour, then a loss of 12 litres within an hour.
    await measure([
      ...Array.from({ length: 60 }, () => 100),
      ...Array.from({ length: 60 }, (_, index) => 100 - index / 5),
    ]);
    expect(await alarms()).toEqual([
      expect.objectContaining({ eventName: 'leaking', state: 'open' }),
    ]);
    await device.end();
  });

  it('freezer.json: an alarm after ten warm minutes', async () => {
    const { device, alarms, measure } = await install('freezer', '0x10');
    await measure(Array.from({ length: 12 }, () => -9));
    expect(await alarms()).toEqual([
      expect.objectContaining({ eventName: 'too warm', state: 'open' }),
    ]);
    await device.end();
  });
});
