import { describe, expect, test } from 'vitest';
import { parseUplink } from '../../connector/device/receive.ts';

const prefix = 'devices/d/up/';
const parse = (topic: string, sent: unknown, mayTell: () => boolean = () => true) =>
  parseUplink(prefix + topic, prefix, Buffer.from(JSON.stringify(sent)), 1_000, 10, mayTell);
const told = (topic: string, sent: unknown) =>
  parse(topic, sent).rejections.map(({ reason, path }) => [reason, path]);

const engine = { pId: 'p', puId: 1, stId: 1, evId: 1, ts: 1 };
const good = { sId: '0x1', val: 1, ts: 5 };

describe('an unknown member is reported with its place', () => {
  test.each([
    ['measurements', { ...good, unit: 'C' }, '/unit'],
    ['measurements', [good, { ...good, value: 2 }, { ...good, other: 1 }], '/1/value'],
    ['measurements', { sId: '0x1', val: { lat: 1, long: 2, alt: 3 } }, '/val/alt'],
    ['state', { puId: 1, stId: 1, state: 'x' }, '/state'],
    ['events', [{ cause: { engine, senses: [{ ...good, lon: 1 }] } }], '/0/cause/senses/0/lon'],
    ['profile', { state: 'request', version: 1 }, '/version'],
    ['configuration', { device: { names: 'x' }, module: [] }, '/device/names'],
  ])('%s %j', (topic, sent, path) => {
    expect(told(topic, sent)).toEqual([['unknown-member', path]]);
    const { content, items } = parse(topic, sent);
    expect({ content, items }).toEqual(
      (({ content, items }) => ({ content, items }))(parse(topic, sent, () => false)),
    );
  });

  test.each([
    ['measurements', good],
    ['measurements', { sId: '0x1', val: { lat: 1, long: 2 } }],
    ['measurements', [good, { ...good, 'x-note': { any: 1 } }]],
    ['measurements', []],
    ['state', { puId: 1, stId: 1, evId: 2, ts: 1 }],
    ['events', { cause: { engine, senses: [{ ...good, lat: 1, long: 1 }] }, timestamp: 1 }],
    ['profile', { state: 'current', pId: 'p', engine: 'device', text: 'x' }],
    ['profile', { state: 'request' }],
    [
      'configuration',
      {
        device: { name: 'x' },
        module: [{ moduleId: 'm', senses: [good].map(({ sId }) => ({ sId, unit: 'C' })) }],
      },
    ],
  ])('nothing is reported for %s %j, and nobody is asked', (topic, sent) => {
    let asked = 0;
    const { rejections } = parse(topic, sent, () => (asked += 1) > 0);
    expect([rejections, asked]).toEqual([[], 0]);
  });

  test('beside what is wrong, with the name that was meant', () => {
    const { rejections } = parse('measurements', { sId: '0x1', value: 1 });
    expect(rejections).toMatchObject([
      { reason: 'invalid-payload', path: '/val' },
      {
        reason: 'unknown-member',
        path: '/value',
        message: expect.stringContaining('did you mean val?'),
      },
    ]);
  });

  test('but not for what is not JSON, or too large', () => {
    expect(told('measurements', 7)).toEqual([['invalid-payload', '']]);
    const many = Array.from({ length: 1_001 }, () => ({ ...good, other: 1 }));
    expect(told('measurements', many)[0]).toEqual(['invalid-payload', '']);
  });
});
