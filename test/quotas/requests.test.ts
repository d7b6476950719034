import { describe, expect, it } from 'vitest';
import { createRequestRate } from '../../src/quotas/rates.ts';
import { startTestHttp } from '../http/start.ts';
import { routes } from '../http/routes.ts';
import { json } from '../http/things.ts';
import defaults from '../../config/default.ts';

const quotas = { ...defaults.quotas, requestsPerSecond: 2, requestsBurst: 10 };

/** A rate whose clock moves only when the test moves it. */
function rateOf(limitsOf = (_accountId: number) => quotas) {
  let monotonicMs = 0;
  const take = createRequestRate(limitsOf, () => monotonicMs);
  return { take, pass: (ms: number) => (monotonicMs += ms) };
}

describe('the requests of an account', () => {
  it('are limited to the burst, then to what comes back', () => {
    const { take, pass } = rateOf();
    const allowed = (count: number) =>
      Array.from({ length: count }, () => take(1)).filter(({ isAllowed }) => isAllowed).length;
    expect(allowed(15)).toBe(10);
    expect(take(1)).toMatchObject({ isAllowed: false, left: 0, retryAfterSeconds: 0.5 });
    // Another account has its own.
    expect(take(2)).toMatchObject({ isAllowed: true, left: 9, burst: 10, windowSeconds: 5 });
    pass(500);
    expect(allowed(5)).toBe(1);
    pass(1_000_000);
    expect(allowed(15)).toBe(10);
  });

  it("are limited by the account's own limit, as soon as it is known", () => {
    const own = new Map([[7, { ...quotas, requestsPerSecond: 4, requestsBurst: 3 }]]);
    const { take, pass } = rateOf((accountId) => own.get(accountId) ?? quotas);
    const allowed = () => Array.from({ length: 15 }, () => take(7).isAllowed).filter(Boolean);
    expect(allowed()).toHaveLength(3);
    pass(500);
    expect(allowed()).toHaveLength(2);
    own.clear();
    pass(5_000);
    expect(allowed()).toHaveLength(10);
  });

  it('are forgotten for accounts with a full bucket, once there are many accounts', () => {
    let asked = 0;
    const { take, pass } = rateOf((_accountId) => (asked++, quotas));
    for (let accountId = 0; accountId < 1_000; accountId += 1) take(accountId);
    expect(asked).toBe(3_000);
    pass(10_000);
    // The sweep looks at all accounts once, and drops them.
    take(5_000);
    expect(asked).toBe(4_003);
    for (let accountId = 0; accountId < 900; accountId += 1) take(accountId);
    expect(asked).toBe(6_703);
  });
});

it('over the limit get 429, with what is left and when', async () => {
  const { take, pass } = rateOf();
  const http = await startTestHttp({ routes, takeRequest: take });
  const post = () =>
    http.fetch('/things/0f8fad5b-d9cb-469f-a165-70867728950e', {
      method: 'POST',
      headers: json,
      body: '{"name":"x"}',
    });
  const limits = ({ status, headers }: Awaited<ReturnType<typeof post>>) => [
    status,
    headers.get('ratelimit'),
    headers.get('ratelimit-policy'),
    headers.get('retry-after'),
  ];
  const policy = '"requests";q=10;w=5';
  for (let n = 1; n <= 4; n += 1) expect(limits(await post())).toEqual([200, null, null, null]);
  expect(limits(await post())).toEqual([200, '"requests";r=5;t=3', policy, null]);
  for (let n = 6; n <= 10; n += 1) expect((await post()).status).toBe(200);
  const refused = await post();
  expect(limits(refused)).toEqual([429, '"requests";r=0;t=5', policy, '1']);
  expect(refused.body).toMatchObject({ type: 'urn:sensorium:error:too-many-requests' });
  // Requests that need no token do not count for the account.
  expect((await http.fetch('/address')).status).toBe(200);
  pass(1_000);
  expect((await post()).status).toBe(200);
  await http.close();
});
