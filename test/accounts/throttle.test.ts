import { afterEach, describe, expect, test } from 'vitest';
import { network } from '../../src/lib/address.ts';
import { canOpenRedis, openRedis, type OpenRedis } from '../support/redis.ts';
import { type App, startApp } from './app.ts';

const password = 'correct horse';

describe.each(canOpenRedis ? ['memory', 'redis'] : ['memory'])(
  '4.2 failed logins, counted in %s',
  (kind) => {
    let app: App;
    let redis: OpenRedis | undefined;
    afterEach(async () => {
      await app.close();
      await redis?.close();
    });
    async function start() {
      redis = kind === 'redis' ? await openRedis() : undefined;
      const http = { trustedProxies: ['127.0.0.1'] };
      const attempts = { perAccount: 3, perAddress: 8 };
      app = await startApp({ http, attempts, redisUrl: redis?.url });
      await app.register('ada@example.com');
    }
    const logIn = (address: string, secret: string, email = 'ada@example.com') =>
      app.call('POST', '/v2/accounts/login', {
        body: { email, password: secret },
        headers: { 'x-forwarded-for': address },
      });
    const fail = async (address: string, times: number, email?: string) =>
      (await Promise.all(Array.from({ length: times }, () => logIn(address, 'wrong', email)))).map(
        ({ status }) => status,
      );

    test('answer 429 with Retry-After, however many come at once, and lock out no other address', async () => {
      await start();
      const statuses = await fail('10.0.0.1', 20);
      expect(new Set(statuses)).toEqual(new Set([401, 429]));
      // Attempts that hash in parallel may exceed the limit by their number.
      expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(5);
      const refused = await logIn('10.0.0.1', password);
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await logIn('10.0.0.2', password)).status).toBe(200);
      // Another spelling of the address is the same account.
      expect((await logIn('10.0.0.1', password, 'ADA@example.com')).status).toBe(429);
    });

    test('count for one account, however its address is spelled', async () => {
      await start();
      await app.register('kim@example.com');
      // KELVIN SIGN lowers to "k"; LATIN CAPITAL LETTER I WITH DOT ABOVE to "i" in some locales only.
      const [kelvin, dotted] = ['\u212Aim@example.com', 'k\u0130m@example.com'];
      expect((await logIn('10.0.0.2', password, dotted)).status).toBe(401);
      expect((await logIn('10.0.0.2', password, kelvin)).status).toBe(200);
      for (const email of ['KIM@example.com', kelvin, 'kim@Example.com']) {
        expect(await fail('10.0.0.1', 1, email)).toEqual([401]);
      }
      for (const email of ['kim@example.com', kelvin]) {
        expect((await logIn('10.0.0.1', password, email)).status).toBe(429);
      }
    });

    test('from one address count for all accounts together', async () => {
      await start();
      for (let i = 0; i < 4; i += 1) await fail('10.0.0.1', 2, `someone-${i}@example.com`);
      expect((await logIn('10.0.0.1', password)).status).toBe(429);
      expect((await logIn('10.0.0.2', password)).status).toBe(200);
    });

    test('spread over many addresses slow down strangers, but not those who logged in before', async () => {
      await start();
      expect((await logIn('10.1.0.1', password)).status).toBe(200);
      for (let i = 0; i < 15; i += 1) await fail(`10.2.0.${i}`, 2);
      expect((await logIn('10.3.0.1', password)).status).toBe(429);
      expect((await logIn('10.1.0.1', password)).status).toBe(200);
    });

    test('are cleared by a success', async () => {
      await start();
      for (let round = 0; round < 3; round += 1) {
        expect(new Set(await fail('10.0.0.1', 2))).toEqual(new Set([401]));
        expect((await logIn('10.0.0.1', password)).status).toBe(200);
      }
    });
  },
);

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:0db8:0001::9', '2001:db8:1:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
])('the network of %s is %s', (address, expected) => {
  expect(network(address)).toBe(expected);
});
