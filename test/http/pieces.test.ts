import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { longestPieceMs } from '../../bench/edges/longest-piece.ts';
import * as payloads from '../../bench/edges/payloads.ts';
import { parseUplink } from '../../connector/device/receive.ts';
import { Purpose } from '../../src/contract/purpose.ts';
import { writeDeviceList } from '../../src/devices/list.ts';
import { defineRoute } from '../../src/http/route.ts';
import { deriveKeys } from '../../src/config/keys.ts';
import { startTestHttp, type TestHttp } from './start.ts';

// Processor time of one piece of work in the event loop, not of a whole request. The aim is 10 ms. Each of these took
// 27 to 225 ms in one piece before it was limited or split. On shared cores more is measured than was used.
const generousMs = 22;

const shared = {
  method: 'post',
  auth: 'account',
  summary: 'A route',
  tag: 'Test',
  errors: [],
  response: z.unknown(),
} as const;
let http: TestHttp;
beforeAll(async () => {
  http = await startTestHttp({
    routes: [
      defineRoute({ ...shared, path: '/purpose', body: Purpose, handler: async () => ({}) }),
    ],
  });
});
afterAll(() => http.close());

/** The best of a few runs, so that compiling and garbage collection do not count. */
async function pieceMs(work: () => unknown): Promise<number> {
  const measured: number[] = [];
  for (let n = 0; n < 9; n += 1) measured.push(await longestPieceMs(work));
  return Math.min(...measured);
}

describe('reading or refusing a body never blocks the event loop for long', () => {
  const { bodies, leanPurpose } = payloads;
  test.each([
    ['30,000 keys', bodies.keys],
    ['arrays 15 deep', bodies.deepArrays],
    ['9,000 bad causes', leanPurpose(9_000).replaceAll('{"sId":"1"}', '{"sId":1}')],
  ])('%s', async (_name, body) => {
    const headers = { 'content-type': 'application/json', authorization: 'Bearer good' };
    const send = () => http.fetch('/purpose', { method: 'POST', headers, body });
    expect((await send()).status).toBe(400);
    expect(await pieceMs(send)).toBeLessThan(generousMs);
  });
});

test('nor does an event of a device with 21,000 invalid senses', async () => {
  const prefix = 'devices/d/up/';
  const payload = Buffer.from(payloads.messages.badSenses);
  const parse = () => parseUplink(`${prefix}events`, prefix, payload, 1, 10);
  expect(parse().rejections).toHaveLength(1);
  expect(await pieceMs(parse)).toBeLessThan(generousMs);
});

test('deriving the tokens of 10,000 devices yields to others', async () => {
  const keys = deriveKeys('a secret of this test, which is long enough').deviceTokens;
  const rows = Array.from({ length: 10_000 }, () => ({
    uuid: randomUUID(),
    token_version: 1,
    name: 'x',
    labels: [],
    pu_id: 1,
    st_id: 1,
    state_at: 1,
    connected: true,
    last_seen_at: null,
  }));
  const pages = async function* () {
    yield rows;
  };
  const read = async () => {
    const texts = await Readable.from(writeDeviceList(keys, pages(), 1)).toArray();
    return (JSON.parse(texts.join('')) as { devices: unknown[] }).devices.length;
  };
  expect(await read()).toBe(10_000);
  const drain = async () => {
    for await (const _text of writeDeviceList(keys, pages(), 1));
  };
  expect(await pieceMs(drain)).toBeLessThan(generousMs);
});
