import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { testService, type TestService } from '../journeys/service.ts';
import { databaseKinds } from '../support/database.ts';
import { addDevice, openAccount, openStream } from './readers.ts';

const sense = '0x01';
const other = '0x02';

describe.each(databaseKinds)('streams of measurements on %s', (kind) => {
  let service: TestService;
  beforeAll(async () => {
    service = await testService({}, { kind });
  });
  afterAll(() => service?.close());

  async function given() {
    const { app, token } = await openAccount(service.url);
    const device = await addDevice(app);
    const open = (query = '', lastEventId?: string) =>
      openStream(`${service.url}/v2/measurements/stream${query}`, token, lastEventId);
    const measure = (...values: [sId: string, val: unknown, ts?: number][]) =>
      device.publish(
        'up/measurements',
        values.map(([sId, val, ts]) => ({ sId, val, ...(ts !== undefined && { ts }) })),
      );
    return { app, token, device, open, measure };
  }

  test('carry numbers and positions of all devices of the account, and of no other', async () => {
    const { app, device, open, measure } = await given();
    const second = await addDevice(app);
    const stranger = await given();
    const stream = await open();
    expect(stream.named('opened')).toEqual([{ timestamp: expect.any(Number), resumed: false }]);
    await stranger.measure([sense, 1]);
    const ts = Date.now();
    await measure([sense, 20.5, ts]);
    await second.publish('up/measurements', { sId: other, val: { lat: 1.5, long: 2 }, ts });
    await stream.untilValues(2);
    expect(stream.named('measurement')).toEqual([
      { deviceAuthUuid: device.uuid, sId: sense, val: 20.5, ts },
      { deviceAuthUuid: second.uuid, sId: other, val: { lat: 1.5, long: 2 }, ts },
    ]);
    stream.close();
  });

  test('of some devices or senses carry only those', async () => {
    const { app, device, open, measure } = await given();
    const second = await addDevice(app, ['cellar']);
    const ofDevice = await open(`?devices=${device.uuid}&senses=${sense}`);
    const ofLabel = await open('?label=cellar');
    await measure([sense, 1], [other, 2]);
    await second.publish('up/measurements', { sId: sense, val: 3 });
    await measure([sense, 4]);
    await second.publish('up/measurements', { sId: other, val: 5 });
    expect(await ofDevice.untilValues(2)).toEqual([
      [sense, 1],
      [sense, 4],
    ]);
    expect(await ofLabel.untilValues(2)).toEqual([
      [sense, 3],
      [other, 5],
    ]);
    ofDevice.close();
    ofLabel.close();
  });

  test('resume with the later values of each sense, whatever the clocks of others say', async () => {
    const { open, measure } = await given();
    const now = Date.now();
    const stream = await open();
    await measure([sense, 1, now], [other, 2, now - 3_600_000]);
    await stream.untilValues(2);
    stream.close();
    // Late for the first sense, later for the second; both are before what was sent last.
    await measure([sense, 3, now - 1_000], [other, 4, now - 3_599_000], [sense, 5, now + 1]);
    const resumed = await open('', stream.lastId());
    expect((await resumed.untilValues(2)).toSorted()).toEqual([
      [sense, 5],
      [other, 4],
    ]);
    expect(resumed.named('opened')).toEqual([
      {
        timestamp: expect.any(Number),
        resumed: true,
        start: expect.any(Number),
        late: 'in-history-only',
      },
    ]);
    await measure([sense, 6, now + 2]);
    expect((await resumed.untilValues(3)).at(-1)).toEqual([sense, 6]);
    resumed.close();
  });

  test('resume with all of many senses, from an id that stays small', async () => {
    const { open, measure } = await given();
    const now = Date.now();
    const stream = await open();
    const many = Array.from({ length: 300 }, (_, i): [string, number, number] => [
      i % 2 === 0 ? sense : other,
      i / 10,
      now - 1_000 + i,
    ]);
    await measure(...many);
    await stream.untilValues(300);
    stream.close();
    expect(stream.lastId().length).toBeLessThan(1_200);
    const later = many.map(([sId, val, ts]): [string, number, number] => [sId, val + 30, ts + 300]);
    await measure(...later);
    const resumed = await open('', stream.lastId());
    const values = await resumed.untilValues(300);
    expect(values.map(([, val]) => val).toSorted((a, b) => Number(a) - Number(b))).toEqual(
      later.map(([, val]) => val),
    );
    resumed.close();
  });

  test('of an id of another server, or from long ago, resume with what is later than its time', async () => {
    const { open, measure } = await given();
    const stream = await open();
    stream.close();
    const now = Date.now();
    const [, position = ''] = stream.lastId().split('=');
    const [, snapshot = '', server = ''] = position.split('.');
    await measure([sense, 1, now - 60_000], [sense, 2, now]);
    const foreign = await open('', `m=${now - 30_000}.${snapshot}.abc`);
    expect(await foreign.untilValues(1)).toEqual([[sense, 2]]);
    expect(foreign.named('opened')[0]).toMatchObject({ start: now - 30_000 });
    foreign.close();
    const old = await open('', `m=${now - 100 * 86_400_000}.${snapshot}.${server}`);
    expect(await old.untilValues(2)).toEqual([
      [sense, 1],
      [sense, 2],
    ]);
    old.close();
  });

  test('with maxHz carry the newest of each period, and resume likewise', async () => {
    const { open, measure } = await given();
    const now = Date.now() - 60_000;
    const stream = await open('?maxHz=5');
    const startedMs = performance.now();
    for (let i = 0; i < 30; i += 1) await measure([sense, i, now + i]);
    await expect.poll(() => stream.values().at(-1), { timeout: 60_000 }).toEqual([sense, 29]);
    const periods = Math.ceil((performance.now() - startedMs) / 200) + 1;
    const ofSense = stream.values().flatMap(([sId, val]) => (sId === sense ? [val] : []));
    expect(ofSense[0]).toBe(0);
    expect(ofSense.length).toBeLessThanOrEqual(periods);
    expect(ofSense).toEqual(ofSense.toSorted((a, b) => Number(a) - Number(b)));
    stream.close();
    const from = Math.ceil((now + 30) / 1_000) * 1_000;
    await measure(
      ...Array.from({ length: 10 }, (_, i): [string, number, number] => [other, 100 + i, from + i]),
    );
    const resumed = await open('?maxHz=5', stream.lastId());
    expect((await resumed.untilValues(1)).at(-1)).toEqual([other, 109]);
    resumed.close();
  });

  test.each(['x', 'm=x', 'm=1.5:9:3', 'e=1.5:5:', 'm=1.5:5:/x', 'm=1.5:5:;m=1.5:5:'])(
    'refuse to resume from %s',
    async (id) => {
      const { open } = await given();
      if (id.startsWith('e=')) (await open('', id)).close();
      else await expect(open('', id)).rejects.toThrow('400');
    },
  );

  test.each([
    ['?maxHz=0', '400'],
    ['?maxHz=1e3', '400'],
    ['?maxhz=1', '400'],
    ['?devices=x', '400'],
    ['?devices=0f8fad5b-d9cb-469f-a165-70867728950e', '404'],
  ])('refuse %s: %s', async (query, status) => {
    const { open } = await given();
    await expect(open(query)).rejects.toThrow(status);
  });
});
