import { expect, test } from 'vitest';
import { parseUplink } from '../../connector/device/receive.ts';

const prefix = 'devices/d/up/';
const parse = (text: string, format: 'json' | 'ndjson' = 'json') => {
  const topic = `${prefix}measurements`;
  return parseUplink(topic, prefix, Buffer.from(text), 1, 10, undefined, format);
};

test('a payload over 64 KiB counts as at least one measurement for every 256 bytes', () => {
  const padded = (items: number, bytes: number) =>
    parse(
      JSON.stringify(Array.from({ length: items }, () => ({ sId: '0x1', val: 1 }))).padEnd(bytes),
    ).items;
  expect([padded(1, 65_536), padded(1, 65_537), padded(900, 131_072)]).toEqual([1, 256, 900]);
});

test('a payload over 64 KiB has at most 12,000 parts, and 1,000 lines', () => {
  const keys = (count: number, bytes: number) =>
    `{${Array.from({ length: count }, (_, n) => `"k${n}":1`).join(',')}}`.padEnd(bytes);
  const parts = (text: string) => parse(text).rejections[0]?.message;
  expect(parts(keys(12_001, 200_000))).toContain('more than 12000 {, [ and ,');
  expect(parts(keys(12_000, 200_000))).not.toContain('more than');
  expect(parts(keys(5_000, 65_536))).not.toContain('more than');
  const lines = (text: string) => parse(text, 'ndjson');
  const good = '{"sId":"0x1","val":1}\n';
  expect(lines(good.repeat(1_000)).content).toMatchObject({ items: { length: 1_000 } });
  for (const [text, count] of [
    [`${good.repeat(1_000)}{}`, 1_001],
    [good.repeat(1_002), 1_002],
    ['\n'.repeat(200_000), 200_000],
    [`${'\n'.repeat(200_000)}x`, 200_001],
  ] as const)
    expect(lines(text).rejections[0]?.message).toContain(`${count} items in one message`);
});
