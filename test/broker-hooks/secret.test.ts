import { describe, expect, test } from 'vitest';
import { memoryLimiters } from '../../src/accounts/login-limits.ts';
import { createBridgeCheck, createSecretCheck } from '../../src/broker-hooks/broker-hooks.ts';
import type { RequestInfo } from '../../src/http/request.ts';

const secret = 'the-secret-of-the-broker';
const right = `Bearer ${secret}`;

/** The results of requests from addresses, and what was counted. */
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
  test('are checked 30 times a minute; then even a right one of that address is refused unchecked', async () => {
    const { ask, counted } = start();
    for (let n = 0; n < 30; n += 1)
      expect(await ask('6.6.6.6', `Bearer ${n}`)).toBe('unauthenticated');
    expect(await ask('6.6.6.6', 'Bearer x')).toBe('too-many-requests');
    expect(await ask('6.6.6.6', right)).toBe('too-many-requests');
    expect(await ask('7.7.7.7', right)).toBe('in');
    expect(counted.filter((reason) => reason === 'wrong-secret')).toHaveLength(30);
    expect(counted.filter((reason) => reason === 'throttled')).toHaveLength(2);
  });

  test('do not lock out a broker that was accepted before, at the same address', async () => {
    const { ask } = start();
    expect(await ask('6.6.6.6', right)).toBe('in');
    for (let n = 0; n < 100; n += 1) await ask('6.6.6.6', `Bearer ${n}`);
    expect(await ask('6.6.6.6', right)).toBe('in');
    expect(await ask('6.6.6.6', `Basic ${Buffer.from(`x:${secret}`).toString('base64')}`)).toBe(
      'in',
    );
  });
});

describe('wrong passwords of a bridge', () => {
  function startBridges() {
    const counted: string[] = [];
    const check = createBridgeCheck({
      secret,
      makeLimiter: memoryLimiters,
      networkOf: (address) => address,
      onRefused: (reason, address) => counted.push(`${reason} ${address}`),
    });
    return { check, counted };
  }

  test('are checked 30 times a minute and address; all are counted', async () => {
    const { check, counted } = startBridges();
    for (let n = 0; n < 1_000; n += 1) expect(await check(`${n}`, '6.6.6.6')).toBe(false);
    expect(await check(secret, '6.6.6.6')).toBe(false);
    expect(counted.filter((one) => one === 'bridge-wrong-password 6.6.6.6')).toHaveLength(30);
    expect(counted.filter((one) => one === 'bridge-throttled 6.6.6.6')).toHaveLength(971);
    expect(await check(secret, '7.7.7.7')).toBe(true);
  });

  test('lock out no bridge that was accepted before, nor any if the broker gives no address', async () => {
    const { check, counted } = startBridges();
    expect(await check(secret, '6.6.6.6')).toBe(true);
    for (const address of ['6.6.6.6', undefined]) {
      for (let n = 0; n < 100; n += 1) await check('wrong', address);
      expect(await check(secret, address)).toBe(true);
    }
    expect(counted).toHaveLength(200);
  });
});
