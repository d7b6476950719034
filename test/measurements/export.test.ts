import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as app from '../events/app.ts';
import { databaseKinds } from '../support/database.ts';
import { pointsIn } from './harness.ts';

type Row = { deviceAuthUuid: string; sId: string; ts: number; val: unknown };
type Answer = { measurements: Row[]; buckets: Record<string, unknown>[]; series: Series[] };
type Series = { deviceAuthUuid: string; sId: string; ts: number[]; val: unknown[] };

const hourMs = 3_600_000;
const t0 = Date.UTC(2026, 5, 1);

describe.each(databaseKinds)('measurements of many devices on %s', (kind) => {
  let history: app.OwnHistory;
  const { store, addDevice } = pointsIn(() => history);
  beforeAll(async () => {
    history = await app.openHistory(kind);
  });
  afterAll(() => history?.close());

  const ask = (accountId: number, query: string, accept = 'application/json') =>
    history.get(`/v2/measurements?${query}`, accountId, { accept });

  async function json(accountId: number, query: string): Promise<Answer> {
    const response = await ask(accountId, query);
    const text = await response.text();
    expect([response.status, text]).toEqual([200, expect.any(String)]);
    return JSON.parse(text) as Answer;
  }

  const dense = (sId: string, count: number) =>
    Array.from({ length: count }, (_, n) => ({ sId, ts: t0 + n * 1_000, val: n / 10 }));

  test('say when they arrived, where that is asked for and known', async () => {
    const device = await app.newDevice(history.db);
    await store(
      device,
      { sId: '0x1', ts: t0, val: 1, arrival: { ts: t0 + 70 }, nth: null },
      { sId: '0x1', ts: t0 + 1, val: 52.5, long: -13.25, arrival: { ts: t0 + 70 }, nth: 1 },
      { sId: '0x1', ts: t0 + 2, val: 3 },
    );
    const query = `devices=${device.uuid}`;
    const { measurements } = await json(device.accountId, `${query}&columns=arrivedTs`);
    const of = { deviceAuthUuid: device.uuid, sId: '0x1' };
    expect(measurements).toEqual([
      { ...of, val: 1, ts: t0, arrivedTs: t0 + 70, nth: null },
      { ...of, val: { lat: 52.5, long: -13.25 }, ts: t0 + 1, arrivedTs: t0 + 70, nth: 1 },
      { ...of, val: 3, ts: t0 + 2, arrivedTs: null, nth: null },
    ]);
    const plain = await json(device.accountId, query);
    expect(plain.measurements[0]).toEqual({ ...of, val: 1, ts: t0 });
    const csv = await (
      await ask(device.accountId, `${query}&columns=arrivedTs`, 'text/csv')
    ).text();
    const start = `${device.uuid},0x1,`;
    expect(csv.split('\r\n')).toEqual([
      'deviceAuthUuid,sId,ts,val,lat,long,arrivedTs,nth',
      `${start}${t0},1,,,${t0 + 70},`,
      `${start}${t0 + 1},,52.5,-13.25,${t0 + 70},1`,
      `${start}${t0 + 2},3,,,,`,
      '',
    ]);
    for (const more of ['shape=columns', 'bucket=1h']) {
      const refused = await ask(device.accountId, `${query}&columns=arrivedTs&${more}`);
      expect([refused.status, await refused.text()]).toEqual([
        400,
        expect.stringMatching('columns'),
      ]);
    }
  });

  test('come series by series, ordered by time, from more rows than one statement returns', async () => {
    const first = await app.newDevice(history.db);
    const second = await addDevice(first.accountId, ['cellar']);
    await store(first, ...dense('0x1', 25_000));
    await store(first, { sId: '0x2', ts: t0, val: 52.5, long: -13.25 });
    await store(second, ...dense('0x1', 30));
    const { accountId } = first;
    const devices = `devices=${second.uuid},${first.uuid}`;
    const { measurements } = await json(accountId, devices);
    const expected = [
      ...dense('0x1', 25_000).map((row) => ({ deviceAuthUuid: first.uuid, ...row })),
      { deviceAuthUuid: first.uuid, sId: '0x2', ts: t0, val: { lat: 52.5, long: -13.25 } },
      ...dense('0x1', 30).map((row) => ({ deviceAuthUuid: second.uuid, ...row })),
    ];
    expect(measurements).toEqual(expected);
    const down = await json(accountId, `devices=${first.uuid}&senses=0x1&order=desc`);
    expect(down.measurements).toEqual(expected.slice(0, 25_000).toReversed());
    const { series } = await json(accountId, `${devices}&shape=columns`);
    const rows = series.flatMap(({ ts, val, ...of }) =>
      ts.map((one, n) => ({ ...of, ts: one, val: val[n] })),
    );
    expect(rows).toEqual(expected);
    const lines = await (await ask(accountId, devices, 'application/x-ndjson')).text();
    expect(
      lines
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Row),
    ).toEqual(expected);
    expect((await json(accountId, 'label=cellar')).measurements).toEqual(expected.slice(25_001));
  });

  test('of one millisecond all come in both directions, also at the end of a block', async () => {
    const device = await app.newDevice(history.db);
    await store(device, ...dense('0x1', 19_998));
    const late = t0 + 20_000_000;
    await store(device, ...[1, 2, 3, 4].map((val) => ({ sId: '0x1', ts: late, val })));
    for (const order of ['asc', 'desc']) {
      const { measurements } = await json(
        device.accountId,
        `devices=${device.uuid}&order=${order}`,
      );
      const vals = measurements.filter(({ ts }) => ts === late).map(({ val }) => val);
      expect(vals).toEqual(order === 'asc' ? [1, 2, 3, 4] : [4, 3, 2, 1]);
      expect(measurements).toHaveLength(20_002);
    }
  });

  test('are CSV that a spreadsheet can read', async () => {
    const device = await app.newDevice(history.db);
    await store(device, { sId: '0x1', ts: t0, val: 1.5 }, { sId: '0x2', ts: t0, val: 1, long: 2 });
    const response = await ask(device.accountId, `devices=${device.uuid}`, 'text/csv');
    expect(response.headers.get('content-type')).toMatch(/^text\/csv/);
    expect(await response.text()).toBe(
      `deviceAuthUuid,sId,ts,val,lat,long\r\n${device.uuid},0x1,${t0},1.5,,\r\n${device.uuid},0x2,${t0},,1,2\r\n`,
    );
  });

  test('are those between two times, in milliseconds or as ISO 8601', async () => {
    const device = await app.newDevice(history.db);
    await store(device, ...dense('0x1', 10));
    const between = async (start: string, end: string) => {
      const range = new URLSearchParams({ devices: device.uuid, start, end });
      return (await json(device.accountId, range.toString())).measurements.length;
    };
    expect(await between(String(t0 + 2_000), String(t0 + 4_000))).toBe(3);
    expect(await between('2026-06-01T00:00:02Z', '2026-06-01T02:00:04+02:00')).toBe(3);
    expect(await between('2026-06-01', '2026-06-02')).toBe(10);
  });

  test.each([
    ['Europe/Berlin', '2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z', 23],
    ['Europe/Berlin', '2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z', 25],
    ['Asia/Kathmandu', '2026-06-01T18:15:00Z', '2026-06-02T18:15:00Z', 24],
  ])('follow the days of %s, from %s to %s', async (tz, from, until, hours) => {
    const device = await app.newDevice(history.db);
    const [start, end] = [Date.parse(from), Date.parse(until)];
    const count = (end - start) / hourMs + 2;
    const rows = Array.from({ length: count }, (_, n) => ({
      sId: '0x1',
      ts: start + (n - 1) * hourMs,
      val: 1,
    }));
    await store(device, ...rows);
    const days = await json(
      device.accountId,
      `devices=${device.uuid}&bucket=1d&tz=${tz}&stats=count,first,last,sum,delta`,
    );
    expect(days.buckets.find(({ ts }) => ts === start)).toMatchObject({
      deviceAuthUuid: device.uuid,
      sId: '0x1',
      count: hours,
      sum: hours,
      delta: 0,
    });
    // Each hour is one bucket, also the two that a clock shows alike.
    const each = await json(device.accountId, `devices=${device.uuid}&bucket=1h&tz=${tz}`);
    expect(each.buckets.map((bucket) => bucket['count'])).toEqual(rows.map(() => 1));
  });

  test('a day whose midnight comes twice begins at the first one, in every zone that has such a day', async () => {
    const zones = zonesWithTwoMidnights(2026);
    expect(zones.map(({ tz }) => tz)).toEqual(
      expect.arrayContaining(['Atlantic/Azores', 'America/Havana']),
    );
    for (const { tz, midnights } of zones) {
      const [first = 0] = midnights;
      const device = await app.newDevice(history.db);
      // A point each quarter of an hour, from three hours before the first midnight.
      const quarter = hourMs / 4;
      const times = Array.from({ length: 34 * 4 }, (_, n) => first + (n - 12) * quarter);
      await store(device, ...times.map((ts) => ({ sId: '0x1', ts, val: 1 })));
      const dateOf = localDate(tz);
      const ofDay = times.filter((ts) => dateOf(ts) === dateOf(first));
      const day = { ts: first, count: ofDay.length };
      const query = `devices=${device.uuid}&tz=${tz}&stats=count`;
      for (const order of ['asc', 'desc']) {
        const all = await json(device.accountId, `${query}&bucket=1d&order=${order}`);
        expect(all.buckets, `${tz} ${order}`).toContainEqual(expect.objectContaining(day));
        const counts = all.buckets.map((bucket) => Number(bucket['count']));
        expect(counts.reduce((a, b) => a + b)).toBe(times.length);
        // Only what lies between the two midnights.
        const between = `start=${first}&end=${(midnights[1] ?? 0) - 1}&order=${order}`;
        for (const bucket of ['1d', '1mo']) {
          const { buckets } = await json(device.accountId, `${query}&bucket=${bucket}&${between}`);
          expect(buckets.map(({ count }) => count)).toEqual([4]);
          expect(Number(buckets[0]?.['ts'])).toBeLessThanOrEqual(first);
        }
      }
    }
  });

  test('in buckets agree with a count by hand, whatever their width and order', async () => {
    const widths = { s: 1_000, m: 60_000, h: hourMs, d: 24 * hourMs };
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.integer({ min: 0, max: 400 * 24 * 60 }), { minLength: 1, maxLength: 40 }),
        fc.constantFrom(...(['s', 'm', 'h', 'd'] as const)),
        fc.integer({ min: 1, max: 90 }),
        fc.boolean(),
        async (minutes, unit, count, isUp) => {
          const device = await app.newDevice(history.db);
          const rows = minutes
            .toSorted((a, b) => a - b)
            .map((minute, n) => ({ sId: '0x1', ts: t0 + minute * 60_000, val: (n % 7) - 3 }));
          await store(device, ...rows);
          const order = isUp ? 'asc' : 'desc';
          const stats = 'min,max,avg,sum,count,first,last,delta';
          const query = `devices=${device.uuid}&bucket=${count}${unit}&order=${order}&stats=${stats}`;
          const { buckets } = await json(device.accountId, query);
          const width = count * widths[unit];
          const groups = Map.groupBy(rows, ({ ts }) => Math.floor(ts / width) * width);
          const expected = [...groups].map(([ts, points]) => {
            const vals = points.map(({ val }) => val);
            const sum = vals.reduce((a, b) => a + b, 0);
            const [first = 0, last = 0] = [vals[0], vals.at(-1)];
            return {
              deviceAuthUuid: device.uuid,
              sId: '0x1',
              ts,
              min: Math.min(...vals),
              max: Math.max(...vals),
              avg: expect.closeTo(sum / vals.length, 9) as number,
              sum,
              count: vals.length,
              first,
              last,
              delta: last - first,
            };
          });
          expect(buckets).toEqual(isUp ? expected : expected.toReversed());
        },
      ),
      { numRuns: 25 },
    );
  });

  test('the mean of a bucket lies between its extremes, as in buckets of one device', async () => {
    const device = await app.newDevice(history.db);
    // Rounding alone would exceed them: 0.1 + 0.1 + 0.1 is 0.30000000000000004.
    for (const [hour, val] of [0.1, 1.7e308, -1.7e308].entries()) {
      const rows = [0, 1, 2].map((n) => ({ sId: '0x1', ts: t0 + hour * hourMs + n, val }));
      await store(device, ...rows);
    }
    const query = `devices=${device.uuid}&bucket=1h&stats=min,max,avg`;
    const { buckets } = await json(device.accountId, query);
    expect(buckets.map(({ avg }) => avg)).toEqual([0.1, 1.7e308, -1.7e308]);
    const one = await history.json(`/v2/measurements/${device.uuid}?bucket=1h`, device.accountId);
    const ofOne = (one['buckets'] as { avg: number }[]).map(({ avg }) => avg);
    expect(ofOne.toReversed()).toEqual(buckets.map(({ avg }) => avg));
  });

  test('a month has its own length', async () => {
    const device = await app.newDevice(history.db);
    const at = [
      '2025-12-31T22:59:59Z',
      '2025-12-31T23:00:00Z',
      '2026-02-28T22:59:59Z',
      '2026-02-28T23:00:00Z',
    ];
    await store(device, ...at.map((text) => ({ sId: '0x1', ts: Date.parse(text), val: 1 })));
    const { buckets } = await json(
      device.accountId,
      `devices=${device.uuid}&bucket=1mo&tz=Europe/Berlin&stats=count`,
    );
    expect(buckets.map(({ ts, count }) => [new Date(Number(ts)).toISOString(), count])).toEqual([
      ['2025-11-30T23:00:00.000Z', 1],
      ['2025-12-31T23:00:00.000Z', 1],
      ['2026-01-31T23:00:00.000Z', 1],
      ['2026-02-28T23:00:00.000Z', 1],
    ]);
  });

  test('the widest buckets agree with those of one device, and wider ones are refused', async () => {
    const device = await app.newDevice(history.db);
    await store(device, { sId: '0x1', ts: t0, val: 1 }, { sId: '0x1', ts: t0 + 1, val: 3 });
    const one = `/v2/measurements/${device.uuid}`;
    for (const [bucket, from] of [
      ['36500d', 0],
      ['876000h', 0],
      ['3153600000s', 0],
      ['1177mo', 0],
    ] as const)
      for (const order of ['asc', 'desc']) {
        const { buckets } = await json(
          device.accountId,
          `devices=${device.uuid}&bucket=${bucket}&order=${order}&stats=count,avg`,
        );
        expect(buckets).toEqual([
          { deviceAuthUuid: device.uuid, sId: '0x1', ts: from, count: 2, avg: 2 },
        ]);
        const body = await history.json(`${one}?bucket=${bucket}`, device.accountId);
        expect(body['buckets']).toMatchObject([{ ts: from, count: 2, avg: 2 }]);
      }
    for (const wider of ['36501d', '1178mo', '9999999999s'])
      for (const path of [`${one}?`, `/v2/measurements?devices=${device.uuid}&`]) {
        const response = await history.get(`${path}bucket=${wider}`, device.accountId);
        expect(await response.json()).toMatchObject({
          status: 400,
          errors: [{ path: 'bucket', message: 'is wider than 36500 days' }],
        });
      }
  });

  test.each([
    ['', 'devices'],
    ['devices=freezer', 'devices'],
    ['label=a&start=yesterday', 'start'],
    ['label=a&bucket=1w', 'bucket'],
    ['label=a&bucket=1d&tz=Mars/Base', 'tz'],
    ['label=a&stats=count', 'stats'],
    ['label=a&bucket=1h&stats=median', 'stats'],
    ['label=a&from=1', 'from'],
  ])('refuses "%s", and names the wrong parameter', async (query, path) => {
    const device = await app.newDevice(history.db);
    const response = await ask(device.accountId, query);
    const { errors } = (await response.json()) as { errors: { path: string }[] };
    expect([response.status, errors[0]?.path]).toEqual([400, path]);
  });

  const hex = (n: number) => `0x${n.toString(16)}`;
  const idsIn = (rows: object[]) => rows.map((row) => (row as Row).sId);
  const devicesIn = (rows: object[]) => rows.map((row) => (row as Row).deviceAuthUuid);
  const problemsOf = async (path: string, accountId: number) => {
    const response = await history.get(path, accountId);
    const { errors } = (await response.json()) as { errors: unknown };
    return { status: response.status, errors };
  };

  test('come for the most devices that a query may name; one more is refused with the reason', async () => {
    const first = await app.newDevice(history.db);
    const { accountId } = first;
    const devices = [first];
    while (devices.length < 401) devices.push(await app.newDevice(history.db, accountId));
    for (const device of devices) await store(device, { sId: '0x1', ts: t0, val: 1 });
    const most = devices.slice(0, 400).map(({ uuid }) => uuid);
    // Written with %2C, as browsers do.
    const asked = (uuids: string[]) => new URLSearchParams({ devices: uuids.join(',') }).toString();
    const { measurements } = await json(accountId, asked(most));
    expect(devicesIn(measurements)).toEqual(most);
    const { buckets } = await json(accountId, `${asked(most)}&bucket=1h`);
    expect(devicesIn(buckets)).toEqual(most);
    const latest = await history.json(`/v2/measurements/latest?${asked(most)}`, accountId);
    expect(devicesIn(latest['latest'] as Row[])).toEqual(most);
    expect(await history.json(`/v2/events?${asked(most)}`, accountId)).toMatchObject({
      events: [],
    });
    const more = asked(devices.map(({ uuid }) => uuid));
    for (const path of [
      'measurements?',
      'measurements?bucket=1h&',
      'measurements/latest?',
      'events?',
    ])
      expect(await problemsOf(`/v2/${path}${more}`, accountId)).toEqual({
        status: 400,
        errors: [{ path: 'devices', message: 'names more than 400 devices' }],
      });
  });

  test('come for a device with more senses than one statement returns rows; a query names 256', async () => {
    const device = await app.newDevice(history.db);
    const { accountId, uuid } = device;
    const senses = Array.from({ length: 1_005 }, (_, n) => hex(n)).toSorted();
    const hours = [0, 1].map((n) => t0 + n * hourMs);
    for (const ts of hours) await store(device, ...senses.map((sId) => ({ sId, ts, val: 1 })));
    const all = senses.flatMap((sId) => hours.map((ts) => ({ deviceAuthUuid: uuid, sId, ts })));
    const { measurements } = await json(accountId, `devices=${uuid}`);
    expect(measurements).toEqual(all.map((row) => ({ ...row, val: 1 })));
    const { buckets } = await json(accountId, `devices=${uuid}&bucket=1h`);
    expect(buckets).toMatchObject(all.map((row) => ({ ...row, count: 1 })));
    const newestFirst = hours
      .toReversed()
      .flatMap((ts) => senses.map((sId) => `${ts} ${sId}`))
      .toSorted();
    for (const query of ['', 'bucket=1h', 'bucket=1h&tz=Asia/Kathmandu']) {
      const found: { ts: number; sId: string }[] = [];
      let at: string | null = `/v2/measurements/${uuid}?${query}`;
      while (at !== null) {
        const response: Response = await history.get(at, accountId);
        const body = (await response.json()) as { measurements?: Row[]; buckets?: Row[] };
        found.push(...(body.measurements ?? body.buckets ?? []));
        at = app.nextOf(response);
      }
      expect(found.map(({ ts }) => ts)).toEqual(
        found.map(({ ts }) => ts).toSorted((a, b) => b - a),
      );
      const isShifted = query.includes('Kathmandu');
      const bucketTs = (ts: number) => (isShifted ? ts + (45 * hourMs) / 60 : ts);
      expect(found.map(({ ts, sId }) => `${bucketTs(ts)} ${sId}`).toSorted()).toEqual(newestFirst);
    }
    const named = senses.slice(0, 256);
    for (const query of [`devices=${uuid}`, `devices=${uuid}&bucket=1d`]) {
      const answer = await json(accountId, `${query}&senses=${named.join(',')}`);
      const found = idsIn(answer.buckets ?? answer.measurements);
      expect([...new Set(found)]).toEqual(named);
    }
    const tooMany = [257, 1_005].map((count) => `senses=${senses.slice(0, count).join(',')}`);
    const paths = [
      `/v2/measurements?devices=${uuid}&`,
      `/v2/measurements?devices=${uuid}&bucket=1h&`,
      `/v2/measurements/${uuid}?`,
      `/v2/measurements/${uuid}?bucket=1h&`,
      '/v2/measurements/latest?',
      `/v2/events?devices=${uuid}&`,
      `/v2/events/${uuid}?`,
    ];
    for (const path of paths)
      for (const query of tooMany)
        expect(await problemsOf(path + query, accountId)).toEqual({
          status: 400,
          errors: [{ path: 'senses', message: 'names more than 256 senses' }],
        });
  });

  test("of another account's device give 404", async () => {
    const [device, foreign] = [await app.newDevice(history.db), await app.newDevice(history.db)];
    const query = `devices=${device.uuid},${foreign.uuid}`;
    expect((await ask(device.accountId, query)).status).toBe(404);
  });
});

/** The date that a clock in the zone shows. */
function localDate(tz: string): (ts: number) => string {
  const format = new Intl.DateTimeFormat('en-CA', { timeZone: tz, dateStyle: 'short' });
  return (ts) => format.format(ts);
}

/** The zones whose clocks show midnight twice on a day of that year, with both instants. */
function zonesWithTwoMidnights(year: number): { tz: string; midnights: number[] }[] {
  const noon = Date.UTC(year, 0, 1, 12);
  return Intl.supportedValuesOf('timeZone').flatMap((tz) => {
    const format = new Intl.DateTimeFormat('en-GB', { timeZone: tz, timeStyle: 'short' });
    const minutesOf = (ts: number) => {
      const [hours = 0, minutes = 0] = format.format(ts).split(':').map(Number);
      return (hours % 24) * 60 + minutes;
    };
    for (let day = 0; day < 365; day += 1) {
      const from = noon + day * 24 * hourMs;
      if (minutesOf(from) === minutesOf(from + 24 * hourMs)) continue;
      const quarters = Array.from({ length: 96 }, (_, n) => from + (n * hourMs) / 4);
      const midnights = quarters.filter((ts) => minutesOf(ts) === 0);
      const [first = 0, second = 0] = midnights;
      if (second - first > 0 && second - first < 12 * hourMs) return [{ tz, midnights }];
    }
    return [];
  });
}
