import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { databaseKinds } from '../support/database.ts';
import { csv, csvOf, linesOf, ndjson, openImporter, startInstallation } from './harness.ts';
import type { Importer, Installation } from './harness.ts';

const t0 = Date.now() - 40 * 86_400_000;

describe.each(databaseKinds)('importing measurements on %s', (kind) => {
  let service: Installation;
  let own: Importer;
  let uuid: string;
  beforeAll(async () => {
    service = await startInstallation({}, { kind });
    own = await openImporter(service.url);
  });
  afterAll(() => service?.close());

  const newDevice = async () => (uuid = (await own.register()).deviceAuthUuid);
  const exported = (type = csv) => own.export(type, `devices=${uuid}`);
  const receipt = (stored: number, repeated = 0, rejected = 0) => ({
    status: 200,
    stored,
    repeated,
    rejected,
    timestamp: expect.any(Number) as number,
  });

  test('what an export wrote is imported unchanged, and stored once', async () => {
    await newDevice();
    const rows = [
      ...linesOf(uuid, 30, t0, '0x01'),
      ...linesOf(uuid, 3_000, t0 - 86_400_000),
      // Numbers in every form, and three values of one millisecond.
      ...[1e300, -1e-300, 0.1, 1 / 3, -0, 1e21, 123_456_789_012_345_680].map(
        (val, n) => `${uuid},0x02,${t0 + 5_000_000 + n},${val},,`,
      ),
      ...[1, 2, 3].map((val) => `${uuid},0x02,${t0 + 7_000_000},${val},,`),
      `${uuid},0x02,${t0 + 8_000_000},,52.5,-13.25`,
      `${uuid},0x02,${t0 + 8_000_001},,-90,180`,
    ];
    expect(await own.import(csvOf(...rows))).toEqual({ ...receipt(rows.length), errors: [] });
    const asCsv = await exported();
    const asLines = await exported(ndjson);
    expect(asCsv.split('\r\n')).toHaveLength(rows.length + 2);
    for (const [text, type] of [
      [asCsv, csv],
      [asLines, ndjson],
    ] as const) {
      expect(await own.import(text, type)).toEqual({ ...receipt(0, rows.length), errors: [] });
      await service.db.query('delete from measurement');
      expect(await own.import(text, type)).toEqual({ ...receipt(rows.length), errors: [] });
      expect(await exported()).toBe(asCsv);
      expect(await exported(ndjson)).toBe(asLines);
    }
    const packed = await own.import(gzipSync(asCsv), csv, { 'content-encoding': 'gzip' });
    expect(packed).toEqual({ ...receipt(0, rows.length), errors: [] });
  });

  test('columns come in any order, with others, quoted; times may be ISO 8601; LF or CRLF, and a BOM', async () => {
    await newDevice();
    const body = [
      '\uFEFFts,"note",val,sId,deviceAuthUuid',
      `"${t0}","says ""hello"", twice",1.5,0x01,${uuid}`,
      `2026-09-01T10:00:00.250+02:00,,"-2e0",0x01,"${uuid.toUpperCase()}"\r`,
      `2026-09-01,,3.,0x01,${uuid}`,
      '',
      `${t0 + 1},x, .5 ,0x02,${uuid}`,
    ].join('\n');
    expect(await own.import(body)).toEqual({ ...receipt(4), errors: [] });
    const { measurements } = await own.json('GET', `/v2/measurements/${uuid}`);
    const iso = Date.UTC(2026, 8, 1, 8, 0, 0, 250);
    expect(measurements).toEqual(
      [
        { sId: '0x01', ts: t0, val: 1.5 },
        { sId: '0x01', ts: iso, val: -2 },
        { sId: '0x01', ts: Date.UTC(2026, 8, 1), val: 3 },
        { sId: '0x02', ts: t0 + 1, val: 0.5 },
      ].toSorted((a, b) => b.ts - a.ts),
    );
  });

  test('a position is val, or lat and long beside each other, in NDJSON; columns in CSV', async () => {
    await newDevice();
    const lines = [
      { deviceAuthUuid: uuid, sId: '0x02', ts: t0, val: { lat: 1, long: 2 } },
      { deviceAuthUuid: uuid, sId: '0x02', ts: t0 + 1, lat: 1, long: 2, more: [] },
      { deviceAuthUuid: uuid, sId: '0x02', ts: '2026-09-01T00:00:00Z', val: 7 },
    ];
    const text = lines.map((line) => JSON.stringify(line)).join('\n');
    expect(await own.import(text, ndjson)).toEqual({ ...receipt(3), errors: [] });
    const place = `deviceAuthUuid,sId,ts,lat,long\n${uuid},0x02,${t0},1,2\n`;
    expect(await own.import(place)).toEqual({ ...receipt(0, 1), errors: [] });
  });

  test('each bad line is reported with its number and the reason; the others are stored', async () => {
    await newDevice();
    const stranger = await openImporter(service.url);
    const theirs = (await stranger.register()).deviceAuthUuid;
    const now = Date.now();
    const lines: [string, string][] = [
      [`${uuid},0x02,${t0},1,,`, ''],
      [`${uuid},0x02,${t0},1,,,`, 'invalid: 7 fields, but the header has 6'],
      ['nonsense', 'invalid: 1 fields, but'],
      [`${uuid},"0x02,${t0},1,,`, 'invalid: a quote is not closed'],
      [`${uuid},0x0"2",${t0},1,,`, 'invalid: a quote is not closed'],
      [`1234,0x02,${t0},1,,`, 'invalid: deviceAuthUuid is not a UUID'],
      [`${uuid},2,${t0},1,,`, 'invalid: sId is not 0x'],
      [`${uuid},0x02,,1,,`, 'invalid: ts is neither'],
      [`${uuid},0x02,2026-09-01T10:00:00,1,,`, 'invalid: ts is neither'],
      [`${uuid},0x02,-5,1,,`, 'invalid: ts is neither'],
      [`${uuid},0x02,${t0},,,`, 'invalid: neither val nor lat and long'],
      [`${uuid},0x02,${t0},NaN,,`, 'invalid: val is not a finite number'],
      [`${uuid},0x02,${t0},1e999,,`, 'invalid: val is not a finite number'],
      [`${uuid},0x02,${t0},0x10,,`, 'invalid: val is not a finite number'],
      [`${uuid},0x02,${t0},1,2,3`, 'invalid: val cannot be combined with lat and long'],
      [`${uuid},0x02,${t0},,91,3`, 'invalid: lat and long must be degrees'],
      [`${uuid},0x02,${t0},,1,`, 'invalid: lat and long must be degrees'],
      [`${uuid},0x02,${now + 600_000},1,,`, 'future-timestamp: '],
      [`${uuid},0x02,${now - 5_000 * 86_400_000},1,,`, 'expired-timestamp: '],
      [`${uuid},0x03,${t0},1,,`, 'unknown-sense: '],
      [`${uuid},0x01,${t0},86,,`, 'out-of-range: '],
      [`${theirs},0x02,${t0},1,,`, 'not-found: the account has no such device'],
      [`${crypto.randomUUID()},0x02,${t0},1,,`, 'not-found: the account has no such device'],
      ['x'.repeat(40_000), 'invalid: the line is longer than 16 KiB'],
      [`${uuid},0x02,${t0 + 1},1,,`, ''],
      ['\u0000\uFFFF,,,,,', 'invalid: deviceAuthUuid is not a UUID'],
    ];
    const body = csvOf(...lines.map(([line]) => line));
    const bad = lines.flatMap(([, reason], n) => (reason === '' ? [] : [{ line: n + 2, reason }]));
    const answer = await own.import(body);
    expect(answer).toMatchObject(receipt(2, 0, bad.length));
    expect(answer.errors).toEqual(
      bad.map(({ line, reason }) => ({ line, reason: expect.stringContaining(reason) as string })),
    );
    expect((await stranger.export(csv, `devices=${theirs}`)).split('\r\n')).toHaveLength(2);
  });

  test('each bad line of NDJSON likewise, up to a hundred of them', async () => {
    await newDevice();
    const good = { deviceAuthUuid: uuid, sId: '0x02', ts: t0, val: 1 };
    const json = (changed: object) => JSON.stringify({ ...good, ...changed });
    const lines = [
      '[]',
      '1',
      'null',
      '{"deviceAuthUuid":',
      json({ ts: 1.5 }),
      json({ ts: '1.5' }),
      json({ ts: null }),
      json({ val: '1' }),
      json({ val: null }),
      json({ val: { lat: 1 } }),
      json({ val: [] }),
      json({ val: true }),
      json({ lat: 1, long: 1 }),
      json({ sId: 7 }),
      json({ sId: '0x02\u0000' }),
      json({ deviceAuthUuid: { toString: 1 } }),
      '['.repeat(10_000),
      ...Array.from({ length: 200 }, () => '{"a":1}'),
    ];
    const answer = await own.import([...lines, json({})].join('\n'), ndjson);
    expect(answer).toMatchObject(receipt(1, 0, lines.length));
    expect(answer.errors.map(({ line }) => line)).toEqual(
      Array.from({ length: 100 }, (_, n) => n + 1),
    );
  });

  test.each([
    ['', 'nothing was sent'],
    ['\r\n', 'the header has no column deviceAuthUuid, sId, ts'],
    ['sId,ts,val\n', 'the header has no column deviceAuthUuid'],
    ['deviceAuthUuid,sId,ts\n', 'the header has neither a column val nor lat and long'],
    ['deviceAuthUuid,sId,ts,lat\n', 'the header has only one of lat and long'],
    ['"deviceAuthUuid,sId,ts,val\n', 'the header has an unclosed quote'],
    ['5b0e6f5e-2b1f-4f0a-9c61-0f2f7d9b8a10,0x02,1,1', 'the header has no column'],
  ])('CSV without a header gives 400: %j', async (body, message) => {
    const answer = await own.import(body);
    expect(answer).toMatchObject({
      status: 400,
      detail: expect.stringMatching(/names the columns in any order: /) as string,
      errors: [{ path: '/1', message: expect.stringContaining(message) as string }],
    });
  });

  test('only a header, or no line of NDJSON, stores nothing', async () => {
    expect(await own.import(csvOf())).toEqual({ ...receipt(0), errors: [] });
    expect(await own.import('', ndjson)).toEqual({ ...receipt(0), errors: [] });
  });

  test.each([
    [{ 'content-type': 'application/json' }, 415],
    [{ 'content-type': 'text/csv; charset=iso-8859-1' }, 415],
    [{ 'content-encoding': 'br' }, 415],
    [{ 'content-encoding': 'gzip' }, 400],
  ])('a body with %j gives %i', async (headers, status) => {
    expect(await own.import(csvOf(), csv, headers as never)).toMatchObject({ status });
  });

  test('whatever is sent, lines are counted or the body is refused', async () => {
    await newDevice();
    const cell = fc.constantFrom(
      uuid,
      '0x01',
      '0x02',
      `${t0}`,
      '1.5',
      '',
      '"',
      '""',
      '-',
      '\u0000',
      '{}',
    );
    const line = fc.array(cell, { maxLength: 8 }).map((cells) => cells.join(','));
    const text = fc.oneof(
      fc.array(fc.oneof(line, fc.string()), { maxLength: 20 }).map((all) => csvOf(...all)),
      fc.array(fc.oneof(fc.json(), line), { maxLength: 20 }).map((all) => all.join('\n')),
    );
    const sent = fc.oneof(text, fc.uint8Array({ maxLength: 2_000 }));
    await fc.assert(
      fc.asyncProperty(sent, fc.constantFrom(csv, ndjson), async (body, type) => {
        const answer = await own.import(body, type);
        expect([200, 400]).toContain(answer.status);
        if (answer.status !== 200) return;
        expect(answer.errors.length).toBe(Math.min(100, answer.rejected));
      }),
      { numRuns: 50 },
    );
  });

  test('empty lines count, anywhere, and cost next to nothing', async () => {
    await newDevice();
    const [header, line] = csvOf(...linesOf(uuid, 1, t0)).split('\n');
    // They cross the boundaries of the pieces in which a body is read.
    for (const [empty, count] of [
      ['\n', 200_001],
      ['\r\n', 100_003],
    ] as const) {
      const body = `${header}\n${empty.repeat(count)}x\n${line}${empty.repeat(7)}y`;
      const answer = await own.import(body);
      expect(answer).toMatchObject({ status: 200, rejected: 2 });
      const numbers = answer.errors.map((error: { line: number }) => error.line);
      expect(numbers).toEqual([count + 2, count + 10]);
    }
    expect(await own.import(`\n${header}\n${line}`)).toMatchObject({ status: 400 });
    const packed = gzipSync(`${header}\n${'\n'.repeat(200_000_000)}`);
    const answer = await own.import(packed, csv, { 'content-encoding': 'gzip' });
    expect(answer.status).toBe(400);
    expect(answer.detail).toContain('expands more than 100-fold');
    // A repetition would end in the same way.
    expect(answer.detail).toContain('If you repeat it, stored lines count as repeated.');
  });

  test('truncated gzip gives 400, and says what is stored of it', async () => {
    await newDevice();
    const packed = gzipSync(csvOf(...linesOf(uuid, 60_000, t0 - 86_400_000)));
    const half = packed.subarray(0, packed.length / 2);
    const answer = await own.import(half, csv, { 'content-encoding': 'gzip' });
    expect(answer.status).toBe(400);
    const stored = (await exported()).split('\r\n').length - 2;
    expect(stored).toBeGreaterThan(0);
    expect(answer.detail).toContain(`${stored} lines are stored, 0 were already there`);
    const whole = await own.import(packed, csv, { 'content-encoding': 'gzip' });
    expect(whole).toEqual({ ...receipt(60_000 - stored, stored), errors: [] });
  });
});
