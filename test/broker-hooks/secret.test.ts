import { describe, expect, test } from 'vitest';
import { memoryLimiters } from '../../src/accounts/limiters.ts';
import { createSecretCheck } from '../../src/broker-hooks/secret.ts';
import type { RequestInfo } from '../../src/http/request.ts';

const secret = 'the-secret-of-the-broker';
const right = `Bearer ${secret}`;

/** What becomes of requests from addresses; what was counted. */
function start() {
  const counted: string[] = [];
  const check = createSecretCheck({
    secret,
    makeLimiter: memoryLimiters,
    networkOf: (address) => address,
    onRefused: (reason) => counted.push(reason),
  });
  const ask = (address: string, authorization: string) =>
    check({ address, header: () => authorization } as unknown as RequestInfo).then(
      () => 'in',
      (error: { code: string }) => error.code,
    );
  return { ask, counted };
}

describe('wrong secrets of a hook', () => {
  test('are looked at 30 times a minute, then not even a right one is, of that address', async () => {
    const { ask, counted } = start();
    for (let n = 0; n < 30; n += 1)
      expect(await ask('6.6.6.6', `Bearer ${n}`)).toBe('unauthenticated');
    expect(await ask('6.6.6.6', 'Bearer x')).toBe('too-many-requests');
    expect(await ask('6.6.6.6', right)).toBe('too-many-requests');
    expect(await ask('7.7.7.7', right)).toBe('in');
    expect(counted.filter((reason) => reason === 'wrong-secret')).toHaveLength(30);
    expect(counted.filter((reason) => reason === 'throttled')).toHaveLength(2);
  });

  test('do not shut out a broker that was in before, behind the same address', async () => {
    const { ask } = start();
    expect(await ask('6.6.6.6', right)).toBe('in');
    for (let n = 0; n < 100; n += 1) await ask('6.6.6.6', `Bearer ${n}`);
    expect(await ask('6.6.6.6', right)).toBe('in');
    expect(await ask('6.6.6.6', `Basic ${Buffer.from(`x:${secret}`).toString('base64')}`)).toBe(
      'in',
    );
  });
});
