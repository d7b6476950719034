import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RecordedEvent } from '../../src/contract/event.ts';
import { recordEvents } from '../../src/events/store.ts';
import { databaseKinds } from '../support/database.ts';
import * as app from './app.ts';

type Listed = { timestamp: number; type: string; deviceAuthUuid: string; eventId: string };

const t0 = Date.UTC(2026, 5, 1);

describe.each(databaseKinds)('events of many devices on %s', (kind) => {
  let history: app.OwnHistory;
  beforeAll(async () => {
    history = await app.openHistory(kind);
  });
  afterAll(() => history?.close());

  const ask = (accountId: number, query: string, accept = 'application/json') =>
    history.get(`/v2/events?${query}`, accountId, { accept });

  async function json(accountId: number, query: string): Promise<Listed[]> {
    const response = await ask(accountId, query);
    const text = await response.text();
    expect([response.status, text]).toEqual([200, expect.any(String)]);
    return (JSON.parse(text) as { events: Listed[] }).events;
  }

  async function record(device: app.Device, ...events: RecordedEvent[]): Promise<void> {
    const owned = events.map((event, n) => app.newEvent(device, `k${n}`, event));
    await history.db.transaction((tx) => recordEvents(tx, owned));
  }

  const of = (event: RecordedEvent, puId: number, stId: number): RecordedEvent => {
    const cause = { ...event.cause, engine: { ...event.cause.engine, puId, stId } };
    return { ...event, cause } as RecordedEvent;
  };

  test('are those of each device, device by device', async () => {
    const first = await app.newDevice(history.db);
    const second = await app.newDevice(history.db, first.accountId);
    await history.db.query(`update device set labels = '{cellar}' where id = $1`, [
      second.deviceId,
    ]);
    await record(first, app.senseEvent(t0 + 5, '0x1', '0x2'), app.deviceEvent(t0 + 5));
    await record(second, app.deviceEvent(t0), app.senseEvent(t0 + 1, '0x1'));
    const alone = async ({ uuid, accountId }: app.Device) => {
      const body = await history.json(`/v2/events/${uuid}`, accountId);
      return (body['events'] as Listed[]).toReversed();
    };
    const expected = [...(await alone(first)), ...(await alone(second))];
    const devices = `devices=${second.uuid},${first.uuid}`;
    const found = await json(first.accountId, devices);
    const byId = (a: Listed, b: Listed) => Number(a.eventId) - Number(b.eventId);
    expect(found.toSorted(byId)).toEqual(expected.toSorted(byId));
    expect(found.map(({ deviceAuthUuid, timestamp }) => [deviceAuthUuid, timestamp])).toEqual(
      expected.map(({ deviceAuthUuid, timestamp }) => [deviceAuthUuid, timestamp]),
    );
    expect(await json(first.accountId, 'label=cellar')).toEqual(await alone(second));
    const lines = await (await ask(first.accountId, devices, 'application/x-ndjson')).text();
    const each = lines
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Listed);
    expect(each).toEqual(found);
  });

  test('all come in both orders, even if many share a millisecond at the end of a block', async () => {
    const device = await app.newDevice(history.db);
    const other = await app.newDevice(history.db, device.accountId);
    const events = Array.from({ length: 450 }, (_, n) =>
      n % 3 === 0
        ? app.deviceEvent(t0 + Math.floor(n / 60))
        : app.senseEvent(t0 + Math.floor(n / 60), '0x1', `0x${n.toString(16)}`),
    );
    await record(device, ...events);
    await record(other, app.senseEvent(t0, '0x1'));
    // Many senses make the blocks small.
    const senses = ['0x1', ...Array.from({ length: 100 }, (_, n) => `0xffff${n}`)].join(',');
    for (const order of ['asc', 'desc']) {
      const devices = `devices=${device.uuid},${other.uuid}`;
      const found = await json(device.accountId, `${devices}&order=${order}&senses=${senses}`);
      expect(new Set(found.map(({ eventId }) => eventId)).size).toBe(301);
      expect(found).toHaveLength(301);
      const own = found.slice(0, 300).map(({ timestamp }) => timestamp);
      expect(own).toEqual(own.toSorted((a, b) => (order === 'asc' ? a - b : b - a)));
      expect(found.at(-1)?.deviceAuthUuid).toBe(other.uuid);
    }
  });

  test('come from more rows than one statement reads, and only those that match', async () => {
    const device = await app.newDevice(history.db);
    const events = Array.from({ length: 4_500 }, (_, n) =>
      of(app.senseEvent(t0 + n, '0x1'), n % 1_000 === 999 ? 7 : 1, n % 2_000 === 999 ? 3 : 1),
    );
    await record(device, ...events);
    const { accountId } = device;
    const devices = `devices=${device.uuid}`;
    expect(await json(accountId, devices)).toHaveLength(4_500);
    const times = async (query: string) =>
      (await json(accountId, `${devices}&${query}`)).map(({ timestamp }) => timestamp - t0);
    expect(await times('purpose=7')).toEqual([999, 1_999, 2_999, 3_999]);
    expect(await times('state=7:3')).toEqual([999, 2_999]);
    expect(await times('purpose=7&state=7:1&order=desc')).toEqual([3_999, 1_999]);
  });

  test('are filtered by type, senses and time like those of one device', async () => {
    const device = await app.newDevice(history.db);
    const events = Array.from({ length: 9 }, (_, n) =>
      n % 2 === 0 ? app.deviceEvent(t0 + n) : app.senseEvent(t0 + n, `0x${n % 4}`, '0xa'),
    );
    await record(device, ...events);
    const { accountId, uuid } = device;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('', 'type=device', 'type=sense'),
        fc.constantFrom('', 'senses=0x1', 'senses=0x3,0xa', 'senses=0xb', 'senses='),
        fc.integer({ min: 0, max: 9 }),
        fc.integer({ min: 0, max: 9 }),
        async (type, senses, from, to) => {
          const [start, end] = [Math.min(from, to), Math.max(from, to)];
          const query = `${type}&${senses}&start=${t0 + start}&end=${t0 + end}`;
          const alone = await history.json(`/v2/events/${uuid}?${query}`, accountId);
          if (type === 'type=device' && /senses=\w/.test(senses)) {
            expect(alone['events']).toEqual([]);
            return;
          }
          const found = await json(accountId, `devices=${uuid}&order=desc&${query}`);
          expect(found).toEqual(alone['events']);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('are CSV that a spreadsheet can read', async () => {
    const device = await app.newDevice(history.db);
    const odd = app.senseEvent(t0, '0x1', '0x2');
    odd.cause.engine.pId = 'a "b", c';
    await record(device, odd, app.deviceEvent(t0 + 1));
    const { accountId, uuid } = device;
    const ids = (await json(accountId, `devices=${uuid}`)).map(({ eventId }) => eventId);
    const response = await ask(accountId, `devices=${uuid}`, 'text/csv');
    expect(response.headers.get('content-type')).toMatch(/^text\/csv/);
    expect((await response.text()).split('\r\n')).toEqual([
      'deviceAuthUuid,timestamp,type,eventId,event,newValue,oldValue,pId,puId,stId,evId,senses,notified,notNotified,purposeName,stateName,eventName',
      `${uuid},${t0},sense,${ids[0]},,,,"a ""b"", c",1,2,3,0x1=1.5 0x2=1.5,true,,,,`,
      `${uuid},${t0 + 1},device,${ids[1]},purposeChanged,2,1,p,1,2,3,,,,,,`,
      '',
    ]);
  });

  test('contain no formula, whatever a device calls its profile', async () => {
    const device = await app.newDevice(history.db);
    const names = ['=cmd|x', '+1', '-1', '@SUM(1)', '\t=1', '\r=1', "'=1", 'a=1', '="a"'];
    for (const [n, pId] of names.entries()) {
      const event = app.senseEvent(t0 + n, '0x1');
      event.cause.engine.pId = pId;
      await record(device, event);
    }
    const response = await ask(device.accountId, `devices=${device.uuid}`, 'text/csv');
    const written = (await response.text()).split('\r\n').slice(1, -1);
    expect(written.map((line) => /,,,,(.*),1,2,3,/s.exec(line)?.[1])).toEqual([
      "'=cmd|x",
      "'+1",
      "'-1",
      "'@SUM(1)",
      "'\t=1",
      '"\'\r=1"',
      "'=1",
      'a=1',
      '"\'=""a"""',
    ]);
  });

  test.each([
    ['', 'devices'],
    ['devices=freezer', 'devices'],
    ['label=a&start=yesterday', 'start'],
    ['label=a&type=account', 'type'],
    ['label=a&purpose=one', 'purpose'],
    ['label=a&state=1', 'state'],
    ['label=a&order=up', 'order'],
    ['label=a&limit=5', 'limit'],
    ['label=a&type=device&senses=0x1', 'senses'],
    ['label=a&start=2&end=1', 'start'],
    ['label=a&purpose=1&state=7:1', 'state'],
  ])('refuses "%s", and names the wrong parameter', async (query, path) => {
    const device = await app.newDevice(history.db);
    const response = await ask(device.accountId, query);
    const { errors } = (await response.json()) as { errors: { path: string }[] };
    expect([response.status, errors[0]?.path]).toEqual([400, path]);
  });

  test("of another account's device give 404", async () => {
    const [device, foreign] = [await app.newDevice(history.db), await app.newDevice(history.db)];
    const query = `devices=${device.uuid},${foreign.uuid}`;
    expect((await ask(device.accountId, query)).status).toBe(404);
  });
});
