import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { DomainError } from '../../src/errors.ts';
import { defineRoute } from '../../src/http/route.ts';
import { startTestHttp, type TestHttp } from './start.ts';

const common = { method: 'get', summary: 'x', tag: 'x', auth: 'none', errors: [] } as const;
const response = z.object({
  first: z.number(),
  last: z.number(),
  timestamp: z.number().optional(),
});

let http: TestHttp;
let nowTs = 1_700_000_000_000;

beforeAll(async () => {
  http = await startTestHttp({
    // Each reading is a second later.
    clock: () => (nowTs += 1_000),
    routes: [
      defineRoute({
        ...common,
        path: '/slow',
        response,
        handler: async ({ request }) => {
          const first = request.receivedTs;
          await new Promise((resolve) => setImmediate(resolve));
          return { first, last: request.receivedTs, timestamp: request.now() };
        },
      }),
      defineRoute({
        ...common,
        path: '/wrong',
        response,
        handler: async ({ request }) => {
          throw new DomainError('conflict', String(request.receivedTs));
        },
      }),
    ],
  });
});
afterAll(() => http.close());

test('all decisions of a request use one time, read when it arrives; its answer has the time of the answer', async () => {
  const { body } = await http.fetch('/slow');
  expect(body).toEqual({ first: nowTs - 1_000, last: nowTs - 1_000, timestamp: nowTs });
  const before = nowTs;
  expect((await http.fetch('/slow')).body).toMatchObject({ first: before + 1_000 });
});

test('and so does its error', async () => {
  const { status, body } = await http.fetch('/wrong');
  expect(status).toBe(409);
  expect(body).toMatchObject({ detail: String(nowTs - 1_000), timestamp: nowTs });
});
