import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { scopes } from '../../src/http/request.ts';
import { configuration, thresholdPurpose } from '../journeys/app.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { openTestDatabase } from '../support/database.ts';
import type { Database } from '../../src/db/database.ts';
import { ask, openAccount, type Answer } from './repeat.ts';

const dayMs = 24 * 3_600_000;

let service: TestService;
let other: TestService;
let db: Database;
let token: string;
let aheadMs = 0;
const keptKeys = 100;

beforeAll(async () => {
  const clocks = { clock: () => Date.now() + aheadMs, monotonicClock: () => performance.now() };
  service = await testService(
    {},
    {
      clocks,
      change: (config) => ({
        ...config,
        quotas: { ...config.quotas, idempotencyKeys: keptKeys },
      }),
    },
  );
  // Another process on the same database.
  other = await testService({ DATABASE_URL: service.databaseUrl }, { clocks });
  db = openTestDatabase(service.databaseUrl);
  token = await openAccount(service.url);
});
afterAll(async () => {
  await db?.close();
  await other?.close();
  await service?.close();
});

const register = (key: string, rest: { url?: string; token?: string; body?: unknown } = {}) =>
  ask(rest.url ?? service.url, {
    path: '/v2/devices',
    token: rest.token ?? token,
    key,
    body: rest.body ?? configuration,
  });

async function usageOf(quota: string): Promise<number> {
  const { body } = await ask(service.url, { method: 'GET', path: '/v2/accounts/usage', token });
  const usage = body['usage'] as { quota: string; used: number }[];
  return usage.find((one) => one.quota === quota)?.used ?? -1;
}

const uuidOf = ({ body }: Answer) => body['deviceAuthUuid'];

describe('the same key', () => {
  test('creates one thing, even for parallel requests at two processes', async () => {
    const before = await usageOf('devices');
    const key = crypto.randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        register(key, { url: n % 2 === 0 ? service.url : other.url }),
      ),
    );
    expect(answers[0]?.status).toBe(200);
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect(await usageOf('devices')).toBe(before + 1);
  });

  test('with another body gives 422, and nothing is created', async () => {
    const key = crypto.randomUUID();
    await register(key);
    const before = await usageOf('devices');
    const answer = await register(key, { body: { ...configuration, module: [] } });
    expect(answer.status).toBe(422);
    expect(await usageOf('devices')).toBe(before);
  });

  test('is a different one for another account, and for an API key', async () => {
    const key = crypto.randomUUID();
    const made = await ask(service.url, {
      path: '/v2/accounts/keys',
      token,
      body: { name: 'a program', scopes },
    });
    const stranger = await openAccount(service.url);
    const answers = [
      await register(key),
      await register(key, { token: stranger }),
      await register(key, { token: String(made.body['key']) }),
    ];
    expect(new Set(answers.map(uuidOf)).size).toBe(3);
  });

  test('is tried again after a refusal, which created nothing', async () => {
    const key = crypto.randomUUID();
    const body = { deviceAuthUuids: [crypto.randomUUID()], purposes: [thresholdPurpose(1, 2)] };
    const asked = { path: '/v2/devices/profile', token, key, body };
    expect((await ask(service.url, asked)).status).toBe(404);
    expect((await register(key, { body: { device: 1 } })).status).toBe(400);
    expect((await register(key)).status).toBe(200);
  });

  test('is forgotten after 24 hours', async () => {
    const key = crypto.randomUUID();
    const first = await register(key);
    aheadMs = dayMs - 60_000;
    expect(await register(key)).toEqual(first);
    aheadMs = dayMs + 60_000;
    const later = await register(key);
    expect(later.status).toBe(200);
    expect(uuidOf(later)).not.toBe(uuidOf(first));
    aheadMs = 0;
  });
});

test.each(['\u00e9', 'x'.repeat(256), '""'])('%j is not a valid key', async (key) => {
  const answer = await fetch(`${service.url}/v2/devices`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Type': 'application/json',
      'Idempotency-Key': key,
    },
    body: JSON.stringify(configuration),
  });
  expect(answer.status).toBe(400);
  expect(await answer.json()).toMatchObject({ errors: [{ path: 'Idempotency-Key' }] });
});

test('what is stored of a token cannot be read in the database', async () => {
  const key = crypto.randomUUID();
  const { body } = await register(key);
  const { rows } = await db.query<{ text: string }>(
    'select k::text as text from idempotency_key k where answer is not null and made is not null',
  );
  expect(rows.length).toBeGreaterThan(0);
  const text = rows.map((row) => row.text).join('\n');
  for (const secret of [body['deviceAuthToken'], body['deviceAuthUuid'], key])
    expect(text).not.toContain(secret);
});

test('an account has a limited number; then the oldest are forgotten', async () => {
  const purpose = thresholdPurpose(1, 2);
  const make = (n: number) =>
    ask(service.url, { path: '/v2/purposes', token, key: `purpose ${n}`, body: purpose });
  const first = await make(0);
  for (let n = 1; n < 3 * keptKeys; n += 1) await make(n);
  const last = await make(3 * keptKeys);
  expect(await usageOf('idempotencyKeys')).toBeLessThan(keptKeys + 64 + 1);
  expect(await make(3 * keptKeys)).toEqual(last);
  expect((await make(0)).body['purposeUuid']).not.toBe(first.body['purposeUuid']);
});
