import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseUplink } from '../../connector/device/receive.ts';
import { SentMeasurement } from '../../src/contract/uplink.ts';

const prefix = 'devices/d/up/';
const parse = (name: string, payload: unknown) => {
  const bytes = Buffer.isBuffer(payload) ? payload : Buffer.from(JSON.stringify(payload));
  return parseUplink(prefix + name, prefix, bytes, 1_000, 10);
};
const faultsOf = (name: string, payload: unknown) =>
  parse(name, payload).rejections.map(({ path, reason }) => [reason, path]);

describe('bytes', () => {
  const good = '{"sId":"0x1","val":1}';
  const taken = [{ index: null, value: { sId: '0x1', val: 1 } }];

  test('a byte order mark at the start is ignored', () => {
    const { content, rejections } = parse('measurements', Buffer.from(`\uFEFF${good}`));
    expect([content, rejections]).toEqual([{ kind: 'measurements', items: taken }, []]);
  });

  test.each([
    [
      `${good}\0`,
      'The payload is not JSON: line 1, column 22: expected the end of the payload, found "\\u0000"',
    ],
    [
      '{"sId":"0x1","val":nan}',
      'The payload is not JSON: line 1, column 20: expected a value, found "nan"',
    ],
    [
      '[{"sId":"0x1"',
      'The payload is not JSON: line 1, column 14: expected , or }, found the end of the payload',
    ],
  ])('%j is reported with the place where it stops being JSON', (payload, message) => {
    const { rejections } = parse('measurements', Buffer.from(payload));
    expect(rejections).toEqual([{ reason: 'invalid-json', message }]);
  });

  test('what is not UTF-8 is refused', () => {
    const latin = Buffer.from('{"sId":"0x1","val":1,"note":"Kälte"}', 'latin1');
    const { rejections } = parse('measurements', latin);
    expect(rejections).toEqual([{ reason: 'invalid-json', message: 'The payload is not UTF-8.' }]);
  });
});

describe('measurements', () => {
  test('one, or an array: good ones are kept with their place, bad ones become rejections', () => {
    const list = [
      { sId: '0x1', val: 1, ts: 5 },
      { sId: '0x1', val: 'high' },
      { sId: '0x2', val: { lat: 47, long: 8 } },
      { val: 3 },
      null,
      { sId: '0x3', val: -0.5, more: true },
    ];
    const { content, rejections } = parse('measurements', list);
    expect(content).toEqual({
      kind: 'measurements',
      items: [
        { index: 0, value: { sId: '0x1', val: 1, ts: 5 } },
        { index: 2, value: { sId: '0x2', val: { lat: 47, long: 8 } } },
        { index: 5, value: { sId: '0x3', val: -0.5 } },
      ],
    });
    expect(rejections.map(({ path }) => path)).toEqual(['/1/val', '/3/sId', '/4']);
    expect(parse('measurements', list[0]).content).toEqual({
      kind: 'measurements',
      items: [{ index: null, value: list[0] }],
    });
  });

  test.each([
    ['a val beyond all numbers', Buffer.from('{"sId":"0x1","val":1e999}'), '/val'],
    ['a val that is not a number', { sId: '0x1', val: '21' }, '/val'],
    ['a latitude beyond the pole', { sId: '0x1', val: { lat: 91, long: 0 } }, '/val/lat'],
    ['half a position', { sId: '0x1', val: { lat: 1 } }, '/val'],
    ['a ts with a fraction', { sId: '0x1', val: 1, ts: 1.5 }, '/ts'],
    ['a ts as text', { sId: '0x1', val: 1, ts: '5' }, '/ts'],
    ['a ts before 1970', { sId: '0x1', val: 1, ts: -1 }, '/ts'],
    ['a sense with an unstorable name', { sId: 'a\0', val: 1 }, '/sId'],
    ['a bare number', 21, ''],
  ])('%s is refused', (_what, payload, path) => {
    expect(faultsOf('measurements', payload)).toEqual([['invalid-payload', path]]);
  });

  test.each([
    ['measurements', 1, { sId: '0x1', val: 5 }],
    ['measurements', { sId: 7 }, { sId: '0x1', val: 5 }],
    ['events', 'x', null],
  ])('of the bad %s of a message ten are listed, the others counted', (name, wrong, right) => {
    const list = Array.from({ length: 1_000 }, () => wrong);
    const sent = right === null ? list : list.with(900, right as never);
    const { content, rejections, items } = parse(name, sent);
    expect(rejections.map(({ path }) => path?.split('/')[1])).toEqual([
      ...Array.from({ length: 10 }, (_, n) => String(n)),
      undefined,
    ]);
    const more = right === null ? 990 : 989;
    const message = `And ${more} more in this message.`;
    expect(rejections.at(-1)).toEqual({ reason: 'more-of-message', message, more });
    const found = right === null ? [] : [{ index: 900, value: right }];
    expect(content).toEqual({ kind: name, items: found });
    expect(items).toBe(1_000);
  });

  test('a message in another product’s format gets an example of a measurement', () => {
    const [rejection] = parse('measurements', {
      Time: '2026-11-25T10:00:00',
      SI7021: {},
    }).rejections;
    expect(rejection).toMatchObject({
      path: '/sId',
      message: 'expected a sense, as in {"sId": "0x10", "val": 21.5} (and 1 more)',
    });
  });

  test('good items are taken unchanged, whatever faults stand beside them', () => {
    const sound = fc.record(
      {
        sId: fc.constantFrom('0x1', '0xAB'),
        val: fc.oneof(
          fc.double({ noNaN: true, noDefaultInfinity: true }),
          fc.record({
            lat: fc.double({ min: -90, max: 90, noNaN: true }),
            long: fc.double({ min: -180, max: 180, noNaN: true }),
          }),
        ),
        ts: fc.nat(),
      },
      { requiredKeys: ['sId', 'val'] },
    );
    const faulty = fc.constantFrom<unknown>(null, 1, [], {}, { sId: 1, val: 1 }, { sId: '0x1' });
    const items = fc.array(
      fc.oneof(
        sound.map((value) => [true, value] as const),
        faulty.map((value) => [false, value] as const),
      ),
    );
    fc.assert(
      fc.property(items, (list) => {
        // As JSON writes it: a negative zero does not survive.
        const sent = JSON.parse(JSON.stringify(list.map(([, value]) => value)));
        const { content, rejections } = parse('measurements', sent);
        if (content.kind !== 'measurements') throw new Error(content.kind);
        const indices = (isSound: boolean) =>
          list.flatMap(([sound], index) => (sound === isSound ? [index] : []));
        expect(content.items.map(({ index }) => index)).toEqual(indices(true));
        expect(content.items.map(({ value }) => value)).toEqual(indices(true).map((n) => sent[n]));
        expect(rejections.map(({ path }) => Number(path?.split('/')[1]))).toEqual(indices(false));
      }),
    );
  });

  test('no bytes make it throw, and bad ones always give a reason', () => {
    const names = ['measurements', 'state', 'events', 'profile', 'configuration', 'other'];
    const anything = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((list) => Buffer.from(list)),
      fc.json().map((text) => Buffer.from(text)),
    );
    fc.assert(
      fc.property(fc.constantFrom(...names), anything, (name, payload) => {
        const { content, rejections, excerpt } = parse(name, payload);
        if (content.kind === 'none') expect(rejections.length).toBeGreaterThan(0);
        expect(excerpt).not.toContain('\0');
      }),
      { numRuns: 500 },
    );
  });
});

describe('a message with many parts', () => {
  const repeated = (text: string, count: number) =>
    Buffer.from(`[${Array(count).fill(text).join(',')}]`);

  test.each(['measurements', 'state', 'events', 'profile', 'configuration'])(
    'on %s is refused with more than 20,000 {, [ and ,, but not for commas in a text',
    (name) => {
      const [rejection, ...others] = parse(name, repeated('[]', 10_001)).rejections;
      expect(others).toEqual([]);
      expect(rejection).toMatchObject({
        reason: 'invalid-payload',
        path: '',
        message: expect.stringContaining('20000'),
      });
      const nested = parse(name, Buffer.from('['.repeat(32_000) + ']'.repeat(32_000)));
      expect(nested.rejections).toMatchObject([{ message: rejection?.message }]);
    },
  );

  test('may have any number of them in its texts', () => {
    const text = ',[{'.repeat(20_000);
    expect(parse('state', { puId: 1, stId: 1, text }).rejections).toEqual([]);
  });

  test('names ten of its wrong items, and counts the others', () => {
    for (const [name, item] of [
      ['events', '{"cause":1}'],
      ['measurements', '{"sId":1}'],
    ] as const) {
      const { rejections, content } = parse(name, repeated(item, 1_000));
      expect(rejections.map(({ path }) => path?.split('/')[1])).toEqual([
        ...Array.from({ length: 10 }, (_, n) => String(n)),
        undefined,
      ]);
      expect(rejections[10]?.message).toBe('And 990 more in this message.');
      expect(content).toMatchObject({ items: [] });
    }
    expect(parse('measurements', repeated('{"sId":1}', 10)).rejections).toHaveLength(10);
  });

  test('keeps good items after ten bad ones', () => {
    const list = [...Array<unknown>(10).fill(null), { sId: '0x1', val: 1 }, null];
    const { content, rejections } = parse('measurements', list);
    expect(content).toMatchObject({ items: [{ index: 10 }] });
    expect(rejections.at(-1)?.message).toBe('And 1 more in this message.');
  });

  test('reports only its first fault if it has thousands', () => {
    const senses = Array.from({ length: 6_000 }, () => ({}));
    const engine = { pId: 'p', puId: 1, stId: 1, evId: 1, ts: 1 };
    const [rejection] = parse('events', { cause: { engine, senses } }).rejections;
    expect(rejection).toMatchObject({ path: '/cause/senses/0/sId' });
    const modules = Array.from({ length: 2_001 }, (_, n) => ({ moduleId: n < 2_000 ? 'm' : 1 }));
    expect(faultsOf('configuration', { device: {}, module: modules })).toEqual([
      ['invalid-payload', '/module/2000/moduleId'],
    ]);
  });
});

describe('the other topics', () => {
  const engine = { pId: 'p', puId: 1, stId: 1, evId: 1, ts: 1 };
  test.each([
    ['state', { puId: 1.5, stId: 1 }, '/puId'],
    ['state', { puId: 3_000_000_000, stId: 1 }, '/puId'],
    ['state', [{ puId: 1, stId: 1 }], ''],
    [
      'events',
      [{ cause: { engine, senses: [{ sId: '0x1', val: null, ts: 1 }] } }],
      '/0/cause/senses/0/val',
    ],
    ['events', { cause: {} }, '/cause/engine'],
    ['profile', { pId: 'p', state: 'done' }, '/state'],
    ['profile', { state: 'current' }, '/pId'],
    ['configuration', { device: {} }, '/module'],
    ['configuration', { device: { name: '\0' }, module: [] }, '/device/name'],
    [
      'configuration',
      { device: {}, module: [{ moduleId: 'm', senses: [{ sId: 'x' }] }] },
      '/module/0/senses/0/sId',
    ],
    [
      'configuration',
      { device: {}, module: [{ moduleId: 'm', senses: [{ sId: '0x1', min: 2, max: 1 }] }] },
      '/module/0/senses/0/min',
    ],
    [
      'configuration',
      { device: {}, module: [{ moduleId: 'm', senses: [{ sId: '0x1' }, { sId: '0x1' }] }] },
      '/module/0/senses/1/sId',
    ],
  ])('%s: %j is refused at %s', (name, payload, path) => {
    expect(faultsOf(name, payload)).toEqual([['invalid-payload', path]]);
    const { content } = parse(name, payload);
    expect('items' in content ? content.items : content.kind).toEqual(
      'items' in content ? [] : 'none',
    );
  });

  test('an unknown topic gets the list of known ones', () => {
    const [rejection] = parse('temperature', 1).rejections;
    expect(rejection).toMatchObject({
      reason: 'unknown-topic',
      message: expect.stringContaining('measurements'),
    });
  });
});

describe('the part of a payload that is kept', () => {
  test('is its first KiB, and all of it if the database refuses it', () => {
    const long = parse('state', 'x'.repeat(5_000));
    expect(long.excerpt).toBe(`"${'x'.repeat(1_023)}`);
    expect(long.payload).toBe(`"${'x'.repeat(5_000)}"`);
    expect(parse('state', 'short').excerpt).toBe('"short"');
  });

  test('has no NUL, which no database text can hold', () => {
    expect(parse('state', Buffer.from('a\0b')).excerpt).toBe('a\uFFFDb');
  });

  test('a long topic is cut', () => {
    expect(parse('x'.repeat(5_000), 1).topic).toHaveLength(1_024);
  });
});

test('a plain measurement is read without the schema, and as the schema reads it', () => {
  const text = fc.oneof(fc.constantFrom('0x1', '', '\0', 'a\uD800', '__proto__'), fc.string());
  const number = fc.oneof(fc.constantFrom(0, -0, 1.5, 2 ** 53, -1, 2 ** 53 - 1), fc.double());
  const odd = fc.constantFrom<unknown>(null, true, '1', [], {}, { lat: 1, long: 2 }, { lat: 91 });
  const sent = fc.record(
    { sId: fc.oneof(text, odd), val: fc.oneof(number, odd), ts: fc.oneof(number, odd), more: odd },
    { requiredKeys: [] },
  );
  const asRead = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  fc.assert(
    fc.property(fc.array(sent, { minLength: 1, maxLength: 3 }), (list) => {
      const expected = list.flatMap((value, index) => {
        const { data } = SentMeasurement.safeParse(asRead(value));
        return data ? [{ index, value: data }] : [];
      });
      expect(parse('measurements', list).content).toEqual({
        kind: 'measurements',
        items: expected,
      });
      expect(parse('measurements', list[0]).content).toEqual({
        kind: 'measurements',
        items: expected.filter(({ index }) => index === 0).map((one) => ({ ...one, index: null })),
      });
    }),
    { numRuns: 2_000 },
  );
  const endless = parse('measurements', Buffer.from('{"sId":"0x1","val":1e999}'));
  expect(endless.content).toEqual({ kind: 'measurements', items: [] });
});
